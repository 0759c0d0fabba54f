#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
Rscript - <<'R'
stopifnot(getRversion() >= "4.5", getRversion() < "4.6")
suppressPackageStartupMessages(library(tidyverse))
means <- mtcars |> group_by(cyl) |> summarise(mean = mean(mpg))
stopifnot(isTRUE(all.equal(means$mean[means$cyl == 4], 26.6636364, tolerance = 1e-6)))
library(data.table)
stopifnot(as.data.table(mtcars)[, .N] == 32)
ggsave("plot.png", ggplot(mtcars, aes(wt, mpg)) + geom_point(), width = 4, height = 3)
stopifnot(file.size("plot.png") > 5000)
cat("  tidyverse and a plot work\n")
R
[ "$(head -c 4 plot.png | tail -c 3)" = PNG ]
# A package of one's own, with C++, as install.packages() builds it.
mkdir -p own/R own/src library
printf 'Package: own\nVersion: 1.0\nTitle: Own\nDescription: Own.\nLicense: none\n' > own/DESCRIPTION
printf 'useDynLib(own)\nexport(answer)\n' > own/NAMESPACE
echo 'answer <- function() .Call("answer_")' > own/R/own.R
cat > own/src/own.cpp <<'CPP'
#include <R.h>
#include <Rinternals.h>
extern "C" SEXP answer_() { return Rf_ScalarInteger(42); }
CPP
R CMD INSTALL --library=library own > install.log 2>&1 || { cat install.log; exit 1; }
[ "$(R_LIBS=library Rscript -e 'cat(own::answer())')" = 42 ]
git --version > /dev/null
python /checks/jupyter.py
python /checks/jupyter.py ir 'cat(6 * 7, "\n"); plot(1:3)' '42'
