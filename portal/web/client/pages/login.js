// Log in.
import "../common/page.js";
import "../login/submit.js";
import "../login/kept.js";
import "../login/fragment.js";
