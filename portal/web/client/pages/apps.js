// The apps of one session.
import "../common/page.js";
import "../common/times.js";
import "../apps/apps.js";
