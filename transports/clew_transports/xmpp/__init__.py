"""XMPP, by slixmpp (extra `xmpp`).

The library acknowledges stanzas to the server before they are stored (XEP-0198). What makes up for it is the server's archive: reading
goes on behind the last archived message that is stored (XEP-0313).
"""
