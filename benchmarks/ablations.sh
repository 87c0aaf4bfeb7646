#!/bin/sh
# Common claims about tree search, measured with playouts: one command per claim, the most important
# first. Each writes a folder with a table, a chart, JSON and every game, and resumes when it is
# called again.
#
#     sh benchmarks/ablations.sh                 all of it
#     sh benchmarks/ablations.sh reuse fpu       these parts
#     RESULTS=/tmp/results PROCESSES=2 sh benchmarks/ablations.sh budgets
#
# Playouts are random and priors uniform unless stated otherwise. On one core of a busy machine with
# two, solver and reuse took half an hour in total; go takes most of the time.
set -eu

RESULTS=${RESULTS:-ablations}
PROCESSES=${PROCESSES:-1}
UCTREE=${UCTREE:-uctree}
ROOT_2=1.4142135623730951 # UCB1's constant in these studies, its default when they were played
UCT="selection=ucb1($ROOT_2)"
PARTS=${*:-one_loop rave solver reuse lcb c_puct budgets tenfold fpu virtual}

study() { # NAME GAME OPTIONS...
    name=$1
    shift
    echo "== $name"
    "$UCTREE" ablate "$@" --processes "$PROCESSES" --folder "$RESULTS/$name"
}

# The one-loop correction on and off.
one_loop() {
    study one_loop-connect_four connect_four --vary "selection=one_loop(mode='off'),one_loop()" --num-simulations 100,1000,10000 --games 400
    study one_loop-othello othello --vary "selection=one_loop(mode='off'),one_loop()" --num-simulations 100,1000,10000 --games 120
    study one_loop-breakthrough breakthrough --vary "selection=one_loop(mode='off'),one_loop()" --num-simulations 100,1000,10000 --games 120
    study one_loop-puct-go go:size=9 --vary "selection=puct(c=2),one_loop(),one_loop(mode='off')" --base "evaluator=playout(priors=True)" --num-simulations 100,800 --games 100
}

# RAVE and GRAVE, at equal simulations and at equal time: on hex they take seven times as long.
# They are built on ucb1(0.1), so they also play against ucb1(0.1) alone.
rave() {
    study rave-hex hex:size=11 --vary "selection=ucb1($ROOT_2),rave(),grave()" --num-simulations 1000 --games 100
    study rave-hex-time hex:size=11 --vary "selection=ucb1($ROOT_2),rave(),grave()" --seconds 0.01 --games 100
    study rave-go go:size=9 --vary "selection=ucb1($ROOT_2),rave(),grave()" --num-simulations 1000 --games 100
    study rave-go-time go:size=9 --vary "selection=ucb1($ROOT_2),rave(),grave()" --seconds 0.01 --games 100
    study rave-hex-c hex:size=11 --vary "selection=ucb1(0.1),rave(),grave(),ucb1($ROOT_2)" --num-simulations 1000 --games 100
    study rave-go-c go:size=9 --vary "selection=ucb1(0.1),rave(),grave(),ucb1($ROOT_2)" --num-simulations 1000 --games 100
}

# Proven values on and off.
solver() {
    study solver-connect_four connect_four --vary solver=false,true --num-simulations 100,1000,10000 --base "$UCT" --games 400
    study solver-breakthrough breakthrough --vary solver=false,true --num-simulations 100,1000 --base "$UCT" --games 200
}

# Tree reuse on and off, and on with 60 % and 50 % of the simulations, against 400 without it.
reuse() {
    study reuse-connect_four connect_four --vary reuse=false,true --vary num_simulations=400,240,200 --base "$UCT" --games 400
    study reuse-othello othello --vary reuse=false,true --vary num_simulations=400,240,200 --base "$UCT" --games 200
    study reuse-go go:size=9 --vary reuse=false,true --vary num_simulations=400,240,200 --base "$UCT" --games 100
}

# The final choice: the most visited action, or the one with the largest lower bound.
lcb() {
    study lcb-connect_four connect_four --vary choice=robust,lcb --num-simulations 100,1000 --base "$UCT" --games 400
    study lcb-othello othello --vary choice=robust,lcb --num-simulations 100,1000 --base "$UCT" --games 200
    study lcb-go go:size=9 --vary choice=robust,lcb --num-simulations 100,1000 --base "$UCT" --games 100
}

# The win rate by c_puct.
c_puct() {
    study c_puct-connect_four connect_four --vary selection.puct.c=1,0.5,2,5 --num-simulations 100,800 --games 400
    study c_puct-othello othello --vary selection.puct.c=1,0.5,2,5 --num-simulations 100,800 --games 200
    study c_puct-go-priors go:size=9 --vary selection.puct.c=1,0.5,2,5 --base "evaluator=playout(priors=True)" --num-simulations 100,800 --games 100
}

# Elo by simulations: each budget against the next one.
budgets() {
    study budgets-connect_four connect_four --vary num_simulations=1,10,50,100,400,800,1600 --pairing neighbours --base "$UCT" --games 400
    study budgets-othello othello --vary num_simulations=1,10,50,100,400,800,1600 --pairing neighbours --base "$UCT" --games 120
    study budgets-go go:size=9 --vary num_simulations=1,10,50,100,400,800,1600 --pairing neighbours --base "$UCT" --games 60
}

# "Ten times the simulations are 200 Elo."
tenfold() {
    study tenfold-connect_four connect_four --vary num_simulations=10,100,1000,10000 --pairing neighbours --base "$UCT" --games 200
    study tenfold-othello othello --vary num_simulations=10,100,1000,10000 --pairing neighbours --base "$UCT" --games 60
}

# The value of an edge without visits.
fpu() {
    study fpu-connect_four connect_four --vary selection.puct.fpu=parent_sqrt,parent,constant,infinite --num-simulations 100,800 --games 400
    study fpu-othello othello --vary selection.puct.fpu=parent_sqrt,parent,constant,infinite --num-simulations 100,800 --games 200
    study fpu-go-priors go:size=9 --vary selection.puct.fpu=parent_sqrt,parent,constant,infinite --base "evaluator=playout(priors=True)" --num-simulations 100,800 --games 60
}

# Threads in one tree: two against one at equal time, and two ways to count simulations in flight at
# equal simulations. These need PROCESSES=1 and idle cores.
virtual() {
    study threads-othello-time othello --vary threads=1,2 --base "$UCT, parallel='tree'" --seconds 0.1 --games 300
    study in_flight-othello othello --vary in_flight=virtual,unobserved --base "$UCT, threads=2, parallel='tree'" --num-simulations 100,800 --games 200
}

for part in $PARTS; do
    case $part in
        one_loop | rave | solver | reuse | lcb | c_puct | budgets | tenfold | fpu | virtual) "$part" ;;
        *)
            echo "ablations.sh: unknown part $part; there are: one_loop rave solver reuse lcb c_puct budgets tenfold fpu virtual" >&2
            exit 2
            ;;
    esac
done
