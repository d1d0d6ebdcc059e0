"""The web room: chat page, console, WebSocket, API, webhooks and monitoring, on TCP and on the daemon's socket."""
