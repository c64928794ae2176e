//! Runs the benchmarks: `whittle-bench [FILTER...]`. One line for each, as it is finished.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

use std::process::ExitCode;

use whittle_bench::filter::Filter;
use whittle_bench::runs::{BenchError, contract, interruptions, moves, packing, policies, speed, standing};

const HELP: &str = "\
usage: whittle-bench [FILTER...]

A filter names one or more consecutive parts of a bench's name: B1, B1/5000, full, le32, B7/mean/1000.

B1/N[/sizes|/anti][/full]  pods a second on Karpenter's 400 synthetic types, its `diverse` mix of spread,
                       affinity and anti-affinity; `sizes` without constraints, `anti` with those on the host
                       name alone; `full` is the default portfolio, else PACKING=Greedy
B1/5000/distinct       no two pods ask for the same
B2/N[/drawn]           growth from N/10 to N pods; `drawn` are generated pods
B3/4000/respect|ignore identical pods with preferences that cannot all hold
B4/1000[/full]         a plan for 1,000 pods beside 100,000 on 5,000 nodes, 20 pools of every type, ten
                       daemons; `full` when no node has room
B5/N[/spread]          a look for moves at N full nodes with ten pods each, none of which can be moved
B6/N                   a look at N nodes whose workloads were halved: time, and cost after its moves to the bound
B7/MIX/N/SET           cost of six mixes on c/m/r types of us-east-1, on-demand: SET le32 (at most 32
                       vCPU) or all; B7/mean/N/SET their mean
B8/N                   in that cluster, from N pods that come to the first action
B10/row/N              a policy's time for a row in calls of N rows: the reference kernel by columns, by row
                       accessors, natively, and given a list<record> instead
B10/call               a call with one row
B10/instance/POLICY    a fresh instance: started, configured, opened
B10/compile/POLICY     loading a component, compiled anew and from the cache
B10/trap[/plan]        a call that traps; a plan made again without the policy that trapped
B10/solve/POLICY       share of a policy in the default plan of 5,000 pods on the 400 synthetic types, of
                       four teams: (with - without) / without
B13/15000              as many messages of the interruption queue, each about another node of one cluster

Timed is the plan alone: for ours from a world that has been told all objects to the finished plan with
its report; for the reference from sorted pods and filtered types to priced nodes. Reading fixtures,
telling objects, sorting and filtering are not timed. Every round starts from fresh state. Both
alternate in one process on one thread; figures are medians, with the spread behind.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--help" || a == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match run(&Filter::new(arguments)) {
        Ok(0) => {
            eprintln!("no bench has such a name: see --help");
            ExitCode::from(2)
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The number of lines printed.
fn run(filter: &Filter) -> Result<usize, BenchError> {
    let mut lines = 0;
    let mut line = |text: String| {
        println!("{text}");
        lines += 1;
    };
    speed::b1(filter, &mut line)?;
    speed::b2(filter, &mut line)?;
    speed::b3(filter, &mut line)?;
    standing::b4(filter, &mut line)?;
    moves::b5(filter, &mut line)?;
    moves::b6(filter, &mut line)?;
    packing::b7(filter, &mut line)?;
    standing::b8(filter, &mut line)?;
    contract::b10(filter, &mut line)?;
    policies::b10(filter, &mut line)?;
    interruptions::b13(filter, &mut line)?;
    Ok(lines)
}
