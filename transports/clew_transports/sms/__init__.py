"""SMS and MMS, by Twilio's REST API and webhook, which other carriers offer too."""
