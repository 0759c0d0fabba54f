#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
cat > test.jl <<'JULIA'
using LinearAlgebra, Statistics
@assert VERSION >= v"1.5" && VERSION < v"1.6"
@assert inv([2.0 0; 0 4]) == [0.5 0; 0 0.25]
@assert mean([1, 2, 3]) == 2
println("  Julia ", VERSION, " works")
JULIA
julia test.jl
git --version > /dev/null
