"""The web room: chat page, WebSocket, API, webhooks and monitoring, on TCP and on the daemon's socket."""
