#!/bin/sh
# What is often printed without evidence, measured with playout search: one command per claim, the
# most important first. Each writes a folder with a table, a chart, JSON and every game, and goes on
# where it was when it is called again.
#
#     sh benchmarks/ablations.sh                 all of it
#     sh benchmarks/ablations.sh reuse fpu       these parts
#     RESULTS=/tmp/results PROCESSES=2 sh benchmarks/ablations.sh budgets
#
# Minutes are estimates for one core: plies (go 130, hex 105, othello 60, connect four 36) times
# simulations over the speeds in README.md, plus 0.3 ms for each search. Compilation comes on
# top: up to a minute for each new rule and game.
set -eu

RESULTS=${RESULTS:-ablations}
PROCESSES=${PROCESSES:-1}
RAMIFY=${RAMIFY:-ramify}
PARTS=${*:-budgets tenfold c_puct reuse fpu rave solver one_loop virtual}

study() { # NAME GAME OPTIONS...
    name=$1
    shift
    echo "== $name"
    "$RAMIFY" ablate "$@" --processes "$PROCESSES" --folder "$RESULTS/$name"
}

# Elo against simulations: each budget against the next one.
budgets() {
    study budgets-connect_four connect_four --vary simulations=1,10,50,100,400,800,1600 --pairing neighbours --games 1000 # 2 min
    study budgets-othello othello --vary simulations=1,10,50,100,400,800,1600 --pairing neighbours --games 600 # 5 min
    study budgets-go go:size=9 --vary simulations=1,10,50,100,400,800,1600 --pairing neighbours --games 400 # 14 min
}

# "Ten times the simulations are 200 Elo."
tenfold() {
    study tenfold-connect_four connect_four --vary simulations=10,100,1000,10000 --pairing neighbours --games 600 # 3 min
    study tenfold-othello othello --vary simulations=10,100,1000,10000 --pairing neighbours --games 400 # 6 min
    study tenfold-go go:size=9 --vary simulations=10,100,1000,10000 --pairing neighbours --games 200 # 17 min
}

# The win rate by c_puct. With uniform priors, and on go with priors by hand.
c_puct() {
    study c_puct-go-priors go:size=9 --vary selection.puct.c=1,0.5,2,5 --base "evaluator=playout(priors=True)" --simulations 100,800 --games 400 # 21 min
    study c_puct-connect_four connect_four --vary selection.puct.c=1,0.5,2,5 --simulations 100,800 --games 1000 # 3 min
    study c_puct-othello othello --vary selection.puct.c=1,0.5,2,5 --simulations 100,800 --games 600 # 5 min
    study c_ucb1-go go:size=9 --vary selection.ucb1.c=1.4,0.35,0.7,2.8 --simulations 100,800 --games 400 # 17 min
}

# Tree reuse on and off, and on with 60 % and 50 % of the simulations, against 400 without it.
reuse() {
    study reuse-connect_four connect_four --vary reuse=false,true --vary simulations=400,240,200 --games 1000 # 2 min
    study reuse-othello othello --vary reuse=false,true --vary simulations=400,240,200 --games 600 # 4 min
    study reuse-go go:size=9 --vary reuse=false,true --vary simulations=400,240,200 --games 400 # 11 min
}

# What an edge never taken is worth.
fpu() {
    study fpu-go-priors go:size=9 --vary selection.puct.fpu=parent_sqrt,parent,constant,infinite --base "evaluator=playout(priors=True)" --simulations 100,800 --games 400 # 21 min
    study fpu-connect_four connect_four --vary selection.puct.fpu=parent_sqrt,parent,constant,infinite --simulations 100,800 --games 1000 # 3 min
    study fpu-othello othello --vary selection.puct.fpu=parent_sqrt,parent,constant,infinite --simulations 100,800 --games 600 # 5 min
}

# All moves as first, at equal simulations and at equal time: on hex they cost seven times as much.
rave() {
    study rave-go go:size=9 --vary "selection=ucb1(),rave(),grave()" --simulations 100,1000 --games 400 # 15 min
    study rave-hex hex:size=11 --vary "selection=ucb1(),rave(),grave()" --simulations 100,1000 --games 400 # 5 min
    study rave-hex-time hex:size=11 --vary "selection=ucb1(),rave(),grave()" --seconds 0.01 --games 200 # 7 min
    study rave-go-time go:size=9 --vary "selection=ucb1(),rave(),grave()" --seconds 0.01 --games 200 # 9 min
}

# Proven values on and off.
solver() {
    study solver-connect_four connect_four --vary solver=false,true --simulations 100,1000,10000 --games 1000 # 6 min
    study solver-breakthrough breakthrough --vary solver=false,true --simulations 100,1000 --games 400 # 1 min
    study solver-othello othello --vary solver=false,true --simulations 100,1000 --games 600 # 2 min
}

# The one-loop correction on and off, and against PUCT.
one_loop() {
    study one_loop-go-priors go:size=9 --vary selection.one_loop.mode=off,kernel,simplex,saddle --base "evaluator=playout(priors=True)" --simulations 100,800 --games 400 # 22 min
    study one_loop-connect_four connect_four --vary selection.one_loop.mode=off,kernel,simplex,saddle --simulations 100,800 --games 1000 # 4 min
    study one_loop-puct-go go:size=9 --vary "selection=puct(),one_loop(),one_loop(mode='off')" --base "evaluator=playout(priors=True)" --simulations 100,800 --games 400 # 14 min
}

# Threads in one tree at equal simulations: what virtual visits cost, and visits that count as such
# alone. Run these with PROCESSES=1 on a quiet machine: what threads do depends on their timing.
virtual() {
    study threads-go go:size=9 --vary threads=1,2,4 --base "parallel='tree'" --simulations 100,800 --games 400 # 20 min
    study in_flight-go go:size=9 --vary in_flight=virtual,unobserved --base "threads=4, parallel='tree'" --simulations 100,800 --games 400 # 10 min
    study in_flight-othello othello --vary in_flight=virtual,unobserved --base "threads=4, parallel='tree'" --simulations 100,800 --games 600 # 3 min
}

for part in $PARTS; do
    case $part in
        budgets | tenfold | c_puct | reuse | fpu | rave | solver | one_loop | virtual) "$part" ;;
        *)
            echo "ablations.sh: unknown part $part; there are: budgets tenfold c_puct reuse fpu rave solver one_loop virtual" >&2
            exit 2
            ;;
    esac
done
