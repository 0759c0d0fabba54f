#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
[ "$(gcc -dumpversion)" = 10 ]
cat > ranks.cpp <<'CPP'
#include <mpi.h>
#include <numeric>
#include <cstdio>
#include <vector>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<int> mine(10);
    std::iota(mine.begin(), mine.end(), 10 * rank);
    const int part = std::accumulate(mine.begin(), mine.end(), 0);
    MPI_Reduce(&part, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%d ranks: %d\n", ranks, sum);
    MPI_Finalize();
}
CPP
cat > CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(ranks LANGUAGES CXX)
find_package(MPI REQUIRED)
add_executable(ranks ranks.cpp)
target_link_libraries(ranks MPI::MPI_CXX)
CMAKE
{ cmake -G Ninja -B build -S . && cmake --build build; } > cmake.log || { cat cmake.log; exit 1; }
# Both on this one node, whatever its name resolves to.
[ "$(mpirun --oversubscribe -n 2 build/ranks)" = "2 ranks: 190" ]
echo "  a C++ program ran under MPI"
gdb -batch -ex 'print 6 * 7' > gdb.log 2>&1
grep -q '= 42' gdb.log
printf 'program p\n print *, 42\nend program\n' > p.f90
gfortran p.f90 -o p && [ "$(./p | tr -d ' ')" = 42 ]
git --version > /dev/null
python /checks/jupyter.py
