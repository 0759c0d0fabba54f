// The contents of an image.
import "../common/page.js";
import "htmx.org";
import "../common/times.js";
import "../common/copy.js";
