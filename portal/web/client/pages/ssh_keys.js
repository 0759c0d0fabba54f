// The SSH keys.
import "../common/page.js";
import "../common/copy.js";
