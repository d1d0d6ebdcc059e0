"""MQTT, by aiomqtt."""
