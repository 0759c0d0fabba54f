"""Addresses by which editors on a user's computer open a session, over SSH by its short name.

VS Code and its relatives (vscode-remote), Zed and JetBrains Gateway document these addresses.
"""

from __future__ import annotations

from urllib.parse import quote

VSCODE = {"VS Code": "vscode", "Cursor": "cursor", "Windsurf": "windsurf"}
"""Editors that understand VS Code's addresses, by title: the scheme."""


def editor_links(name: str, user: str, folder: str) -> dict[str, str]:
    """Addresses by the editor's title.

    `name`: the session in SSH clients (SshEndpoint.name). `folder`: an absolute path; "" if only
    the session knows its home, which the editors then begin in or ask for.
    """
    path = quote(folder) or "/"
    links = {
        title: f"{scheme}://vscode-remote/ssh-remote+{name}{path}"
        for title, scheme in VSCODE.items()
    }
    links["Zed"] = f"zed://ssh/{name}{path if folder else '/~'}"
    project = {"projectPath": folder} if folder else {}
    fields = {"type": "ssh", "host": name, "port": "22", "user": user, **project}
    links["JetBrains Gateway"] = f"jetbrains-gateway://connect#{_query(fields)}"
    return links


def _query(fields: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
