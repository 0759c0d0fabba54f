// A log.
import "../common/page.js";
import "../common/times.js";
import "../logs/log.js";
