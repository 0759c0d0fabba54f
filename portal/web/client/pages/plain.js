// Pages without a separate script.
import "../common/page.js";
