// A session that is over.
import "../common/page.js";
import "../common/times.js";
