//! The columns of every table, generated from `columns.toml`: an enum to ask for them, and for rows
//! of input tables an accessor each. Nothing is written here by hand.

use crate::table::table;

table! {
    /// What holds for one whole plan; it has a single row.
    RoundColumn "round" Round 0 {
        /// Name of the cluster.
        0 Cluster "cluster" word cluster;
        /// AWS region.
        1 Region "region" word region;
        /// AWS account.
        2 Account "account" word account;
        /// When the plan is made; the only clock a policy has.
        3 TimeSeconds "time-seconds" int time_seconds;
        /// Nodes of the cluster, planned ones included.
        4 Nodes "nodes" int nodes;
        /// Pods bound to nodes.
        5 Pods "pods" int pods;
        /// Pods this plan has to place.
        6 PendingPods "pending-pods" int pending_pods;
    } open {
        /// A number published by the cluster's owner under this name; 0 when there is none.
        7 Signal "signal" int signal;
    }
}

table! {
    /// Offerings that could be bought, and nodes that exist; the rows to price.
    CandidateColumn "candidates" Candidate 1 {
        /// The pods it would be bought for.
        0 Asker "asker" row asker Asker;
        /// Which mix it is priced against: rows of table mix with this number. A node that exists has one without itself.
        1 Mix "mix" int mix;
        /// Whether this is a node that exists; a veto does not bind it.
        2 Exists "exists" bool exists;
        /// NodePool that would own it.
        3 NodePool "node-pool" word node_pool;
        /// Weight of that NodePool.
        4 Weight "weight" int weight;
        /// Instance type, such as `m7g.2xlarge`.
        5 InstanceType "instance-type" word instance_type;
        /// Family of the type, such as `m7g`.
        6 Family "family" word family;
        /// Category of the type, such as `m`.
        7 Category "category" word category;
        /// Generation of the type; 0 when it has none.
        8 Generation "generation" int generation;
        /// Size of the type, such as `2xlarge`.
        9 Size "size" word size;
        /// `amd64` or `arm64`.
        10 Arch "arch" word arch;
        /// Maker of the CPU: `intel`, `amd`, `aws`.
        11 CpuManufacturer "cpu-manufacturer" word cpu_manufacturer;
        /// Availability zone, such as `us-east-1a`.
        12 Zone "zone" word zone;
        /// Zone id, the same in every account, such as `use1-az1`.
        13 ZoneId "zone-id" word zone_id;
        /// `spot`, `on-demand` or `reserved`.
        14 CapacityType "capacity-type" word capacity_type;
        /// List price; for spot today's price, 0 for a reservation.
        15 ListMicros "list-micros" int list_micros;
        /// On-demand list price of the type.
        16 OnDemandMicros "on-demand-micros" int on_demand_micros;
        /// Rank after the policies before this one.
        17 RankMicros "rank-micros" int rank_micros;
        /// Cost after the policies before this one.
        18 CostMicros "cost-micros" int cost_micros;
        /// vCPUs of the type.
        19 CpuMilli "cpu-milli" int cpu_milli;
        /// Memory of the type.
        20 MemoryMib "memory-mib" int memory_mib;
        /// GPUs of the type.
        21 Gpus "gpus" int gpus;
        /// Model of its GPUs, such as `t4`.
        22 GpuName "gpu-name" word gpu_name;
        /// Memory of one GPU.
        23 GpuMemoryMib "gpu-memory-mib" int gpu_memory_mib;
        /// Accelerators that are no GPUs: Inferentia, Trainium.
        24 Accelerators "accelerators" int accelerators;
        /// Model of those accelerators.
        25 AcceleratorName "accelerator-name" word accelerator_name;
        /// Baseline network bandwidth.
        26 NetworkMbps "network-mbps" int network_mbps;
        /// Local NVMe storage.
        27 LocalNvmeGib "local-nvme-gib" int local_nvme_gib;
        /// Whether its CPU runs on credits.
        28 Burstable "burstable" bool burstable;
        /// Whether it is a flex type, which cannot use its whole CPU for long.
        29 Flex "flex" bool flex;
        /// Whether it is a bare-metal type.
        30 BareMetal "bare-metal" bool bare_metal;
        /// Capacity reservation it would use; empty when it is not reserved.
        31 ReservationId "reservation-id" word reservation_id;
        /// Instances left in that reservation.
        32 ReservationLeft "reservation-left" int reservation_left;
        /// Interruptions seen in this spot pool.
        33 Interruptions "interruptions" int interruptions;
        /// Hours those interruptions were counted over; few hours mean little is known.
        34 ExposureHours "exposure-hours" int exposure_hours;
        /// Since this pool last answered that it has no capacity; -1 when it never did.
        35 SoldOutSeconds "sold-out-seconds" int sold_out_seconds;
        /// Highest spot price of the last 24 hours.
        36 SpotMax24hMicros "spot-max-24h-micros" int spot_max_24h_micros;
        /// Free addresses of the subnets in its zone, rounded down by at most an eighth; -1 when not known, as in simulations.
        37 FreeAddresses "free-addresses" int free_addresses;
        /// CPU that pods can request.
        38 AllocatableCpuMilli "allocatable-cpu-milli" int allocatable_cpu_milli;
        /// Memory that pods can request.
        39 AllocatableMemoryMib "allocatable-memory-mib" int allocatable_memory_mib;
        /// Pods it can run.
        40 AllocatablePods "allocatable-pods" int allocatable_pods;
        /// CPU its DaemonSets take.
        41 DaemonCpuMilli "daemon-cpu-milli" int daemon_cpu_milli;
        /// Memory its DaemonSets take.
        42 DaemonMemoryMib "daemon-memory-mib" int daemon_memory_mib;
        /// Pods of the asker it would hold if it held nothing else.
        43 HoldsPods "holds-pods" int holds_pods;
    } open {
        /// Value of this label of the node; empty when it has none.
        44 Label "label" word label;
    }
}

table! {
    /// Classes of pods that want a node, or would have to move.
    AskerColumn "askers" Asker 2 {
        /// Namespace of the pods.
        0 Namespace "namespace" word namespace;
        /// Kind of their controller, such as `ReplicaSet`; empty for bare pods.
        1 OwnerKind "owner-kind" word owner_kind;
        /// Name of the workload they belong to.
        2 Workload "workload" word workload;
        /// CPU one pod requests.
        3 CpuMilli "cpu-milli" int cpu_milli;
        /// Memory one pod requests, rounded up.
        4 MemoryMib "memory-mib" int memory_mib;
        /// GPUs one pod requests.
        5 Gpus "gpus" int gpus;
        /// Pods of this class that ask now.
        6 Count "count" int count;
        /// Pods that the workload keeps, as its controller has made them: those neither ending nor ended; 0 without a controller.
        7 DesiredReplicas "desired-replicas" int desired_replicas;
        /// Priority of the pods.
        8 Priority "priority" int priority;
        /// Whether they mount persistent volumes.
        9 HasVolume "has-volume" bool has_volume;
        /// Their termination grace period.
        10 TerminationGraceSeconds "termination-grace-seconds" int termination_grace_seconds;
        /// How long the oldest of them has been pending; 0 when none is.
        11 OldestPendingSeconds "oldest-pending-seconds" int oldest_pending_seconds;
    } open {
        /// Value of this label of the pods; empty when they have none.
        12 Label "label" word label;
        /// Value of this annotation of the pods.
        13 Annotation "annotation" word annotation;
        /// Value of this label of their namespace.
        14 NamespaceLabel "namespace-label" word namespace_label;
        /// What one pod requests of this extended resource.
        15 Request "request" int request;
    }
}

table! {
    /// What the cluster is made of, planned nodes included: one row for each mix, key, value, capacity type, zone and family that occurs, in the order of the mixes' numbers.
    MixRowColumn "mix" MixRow 3 {
        /// Number of the mix, as named by a candidate or a move.
        0 Mix "mix" int mix;
        /// Which of the asked mix keys the row counts by, such as `node-pool` or `label:team`.
        1 Key "key" word key;
        /// Value of that key.
        2 Value "value" word value;
        /// `spot`, `on-demand` or `reserved`.
        3 CapacityType "capacity-type" word capacity_type;
        /// Availability zone.
        4 Zone "zone" word zone;
        /// Family of the types.
        5 Family "family" word family;
        /// Nodes; one that holds several values counts in each of them.
        6 Nodes "nodes" int nodes;
        /// Pods, without those of DaemonSets.
        7 Pods "pods" int pods;
        /// CPU those pods request.
        8 CpuMilli "cpu-milli" int cpu_milli;
        /// What the nodes cost by list and spot price, shared out by requests.
        9 ListMicros "list-micros" int list_micros;
        /// The same by the policies' cost.
        10 CostMicros "cost-micros" int cost_micros;
    } open {
    }
}

table! {
    /// Moves that the engine found; the rows to score. A move of kind `expired` or `rebalance` has score 0 and is made when a policy scores it above that: nobody else asks for it.
    MoveColumn "moves" Move 4 {
        /// `empty`, `underutilized`, `drifted`; `expired`, in the last quarter of a node's life (eight days at most), after which it goes whatever is answered; or `rebalance`, after EC2 advised to leave a node.
        0 Kind "kind" word kind;
        /// Why the engine proposes it, in a few words.
        1 Reason "reason" word reason;
        /// Which mix it is judged against: the cluster without the nodes it removes.
        2 Mix "mix" int mix;
        /// Score after the judges before this one.
        3 Score "score" int score;
        /// Nodes that would go.
        4 Nodes "nodes" int nodes;
        /// Nodes that would be bought for them.
        5 Replacements "replacements" int replacements;
        /// Pods that would have to move.
        6 Pods "pods" int pods;
        /// What it saves by list and spot price; for the kinds `drifted`, `expired` and `rebalance` what its node costs, for what is bought instead is planned once it may be made.
        7 SavingsListMicros "savings-list-micros" int savings_list_micros;
        /// What it saves by cost.
        8 SavingsCostMicros "savings-cost-micros" int savings_cost_micros;
        /// What it saves by rank.
        9 SavingsRankMicros "savings-rank-micros" int savings_rank_micros;
        /// Estimate of how long the nodes take to drain.
        10 DrainSeconds "drain-seconds" int drain_seconds;
        /// Evictions the tightest PodDisruptionBudget still allows; -1 when none applies.
        11 PdbSlack "pdb-slack" int pdb_slack;
        /// For drift: hash of the configuration that nodes are brought to.
        12 TargetDigest "target-digest" word target_digest;
        /// Nodes that already have that configuration.
        13 TargetNodes "target-nodes" int target_nodes;
        /// Age of the oldest of them; 0 when there is none.
        14 TargetAgeSeconds "target-age-seconds" int target_age_seconds;
        /// How many of them are not ready.
        15 TargetNotReady "target-not-ready" int target_not_ready;
        /// How many launches with it failed.
        16 TargetFailures "target-failures" int target_failures;
    } open {
    }
}

table! {
    /// The nodes that moves would remove, in the order of the moves.
    MoveNodeColumn "move-nodes" MoveNode 5 {
        /// The move.
        0 Move "move" row of_move Move;
        /// Name of the node.
        1 Name "name" word name;
        /// Its NodePool.
        2 NodePool "node-pool" word node_pool;
        /// Its instance type.
        3 InstanceType "instance-type" word instance_type;
        /// Family of its type.
        4 Family "family" word family;
        /// Its zone.
        5 Zone "zone" word zone;
        /// `spot`, `on-demand` or `reserved`.
        6 CapacityType "capacity-type" word capacity_type;
        /// What it costs by list or spot price.
        7 ListMicros "list-micros" int list_micros;
        /// The same by cost.
        8 CostMicros "cost-micros" int cost_micros;
        /// Its rank.
        9 RankMicros "rank-micros" int rank_micros;
        /// Its age.
        10 AgeSeconds "age-seconds" int age_seconds;
        /// When it expires, negative when that has passed; 10^12 when it never does.
        11 ExpiresSeconds "expires-seconds" int expires_seconds;
        /// Requested share of its allocatable CPU.
        12 CpuUsedPermille "cpu-used-permille" int cpu_used_permille;
        /// Requested share of its allocatable memory.
        13 MemoryUsedPermille "memory-used-permille" int memory_used_permille;
        /// Since pods of it were last moved here by a move; -1 when never.
        14 LastMovedSeconds "last-moved-seconds" int last_moved_seconds;
        /// Moves its pods went through in the last 24 hours.
        15 Moves24h "moves-24h" int moves_24h;
    } open {
        /// Value of this label of the node; empty when it has none.
        16 Label "label" word label;
    }
}

table! {
    /// The pods that moves would evict, by class and node, in the order of the moves.
    MovePodColumn "move-pods" MovePod 6 {
        /// The move.
        0 Move "move" row of_move Move;
        /// The node they run on.
        1 Node "node" row node MoveNode;
        /// Their class.
        2 Asker "asker" row asker Asker;
        /// How many.
        3 Count "count" int count;
        /// Age of the youngest.
        4 YoungestSeconds "youngest-seconds" int youngest_seconds;
        /// Age of the oldest.
        5 OldestSeconds "oldest-seconds" int oldest_seconds;
        /// Container restarts of all of them.
        6 Restarts "restarts" int restarts;
        /// Sum of their eviction costs, as Karpenter weighs them, in thousandths.
        7 RestartCost "restart-cost" int restart_cost;
    } open {
    }
}

table! {
    /// The share each NodePool has in a move, in the order of the moves.
    MovePoolColumn "move-pools" MovePool 7 {
        /// The move.
        0 Move "move" row of_move Move;
        /// The NodePool.
        1 NodePool "node-pool" word node_pool;
        /// Its nodes that would go.
        2 Nodes "nodes" int nodes;
        /// What those nodes cost.
        3 CostMicros "cost-micros" int cost_micros;
        /// Disruption cost of those nodes, in thousandths.
        4 DisruptionCost "disruption-cost" int disruption_cost;
        /// All nodes of the NodePool.
        5 PoolNodes "pool-nodes" int pool_nodes;
        /// What all of them cost.
        6 PoolCostMicros "pool-cost-micros" int pool_cost_micros;
        /// Disruption cost of all of them, in thousandths.
        7 PoolDisruptionCost "pool-disruption-cost" int pool_disruption_cost;
    } open {
    }
}

table! {
    /// What `price-candidates` answers, a row for each candidate.
    PriceColumn "prices" {
        /// What choice minimises; -1-i vetoes for reason i; 0 is raised to 1; above 10^12 is refused.
        0 RankMicros "rank-micros" int;
        /// Real money, for bills and bounds; unchanged when not answered; negative or above 10^12 is refused.
        1 CostMicros "cost-micros" int;
    } open {
    }
}

table! {
    /// What `score-moves` answers, a row for each move.
    ScoreColumn "scores" {
        /// Higher goes first; -1-i vetoes for reason i; above 10^12 is refused.
        0 Score "score" int;
    } open {
    }
}
