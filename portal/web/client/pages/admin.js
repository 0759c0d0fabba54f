// Administration.
import "../common/page.js";
import "../common/times.js";
import "../admin/admin.js";
