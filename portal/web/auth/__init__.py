"""Who is asking: logins of browsers and tokens of programs, both kept on the server."""
