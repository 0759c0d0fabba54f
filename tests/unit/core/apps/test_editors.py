"""Addresses for editors, as their makers document them."""

from __future__ import annotations

from portal.core.apps.editors import editor_links


def test_a_folder_with_any_name() -> None:
    links = editor_links("slipway-lab1", "alice", "/home/alice/Größen 1")
    path = "/home/alice/Gr%C3%B6%C3%9Fen%201"
    assert links == {
        "VS Code": f"vscode://vscode-remote/ssh-remote+slipway-lab1{path}",
        "Cursor": f"cursor://vscode-remote/ssh-remote+slipway-lab1{path}",
        "Windsurf": f"windsurf://vscode-remote/ssh-remote+slipway-lab1{path}",
        "Zed": f"zed://ssh/slipway-lab1{path}",
        "JetBrains Gateway": "jetbrains-gateway://connect#type=ssh&host=slipway-lab1&port=22"
        "&user=alice&projectPath=%2Fhome%2Falice%2FGr%C3%B6%C3%9Fen%201",
    }


def test_a_home_that_only_the_session_knows() -> None:
    links = editor_links("slipway-lab1", "alice", "")
    assert links["VS Code"].endswith("+slipway-lab1/")
    assert links["Zed"] == "zed://ssh/slipway-lab1/~"
    assert "projectPath" not in links["JetBrains Gateway"]
