// One session.
import "../common/page.js";
import "../common/morph.js";
import "../common/times.js";
import "../apps/apps.js";
import "../common/detail.js";
