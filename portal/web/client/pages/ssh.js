// SSH to a session.
import "../common/page.js";
import "htmx.org";
import "../common/copy.js";
import "../apps/ssh.js";
