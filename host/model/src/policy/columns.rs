//! The columns of every table of the policy contract, generated from `sdk/columns.toml`. Nothing is
//! written here by hand.

use super::column::table;

table! {
    /// What holds for one whole plan; it has a single row.
    RoundColumn "round" {
        /// Name of the cluster.
        0 Cluster "cluster" word;
        /// AWS region.
        1 Region "region" word;
        /// AWS account.
        2 Account "account" word;
        /// When the plan is made; the only clock a policy has.
        3 TimeSeconds "time-seconds" int;
        /// Nodes of the cluster, planned ones included.
        4 Nodes "nodes" int;
        /// Pods bound to nodes.
        5 Pods "pods" int;
        /// Pods this plan has to place.
        6 PendingPods "pending-pods" int;
    } open {
        /// A number published by the cluster's owner under this name; 0 when there is none.
        7 Signal "signal" int;
    }
}

table! {
    /// Offerings that could be bought, and nodes that exist; the rows to price.
    CandidateColumn "candidates" {
        /// The pods it would be bought for.
        0 Asker "asker" row;
        /// Which mix it is priced against: rows of table mix with this number. A node that exists has one without itself.
        1 Mix "mix" int;
        /// Whether this is a node that exists; a veto does not bind it.
        2 Exists "exists" bool;
        /// NodePool that would own it.
        3 NodePool "node-pool" word;
        /// Weight of that NodePool.
        4 Weight "weight" int;
        /// Instance type, such as `m7g.2xlarge`.
        5 InstanceType "instance-type" word;
        /// Family of the type, such as `m7g`.
        6 Family "family" word;
        /// Category of the type, such as `m`.
        7 Category "category" word;
        /// Generation of the type; 0 when it has none.
        8 Generation "generation" int;
        /// Size of the type, such as `2xlarge`.
        9 Size "size" word;
        /// `amd64` or `arm64`.
        10 Arch "arch" word;
        /// Maker of the CPU: `intel`, `amd`, `aws`.
        11 CpuManufacturer "cpu-manufacturer" word;
        /// Availability zone, such as `us-east-1a`.
        12 Zone "zone" word;
        /// Zone id, the same in every account, such as `use1-az1`.
        13 ZoneId "zone-id" word;
        /// `spot`, `on-demand` or `reserved`.
        14 CapacityType "capacity-type" word;
        /// List price; for spot today's price, 0 for a reservation.
        15 ListMicros "list-micros" int;
        /// On-demand list price of the type.
        16 OnDemandMicros "on-demand-micros" int;
        /// Rank after the policies before this one.
        17 RankMicros "rank-micros" int;
        /// Cost after the policies before this one.
        18 CostMicros "cost-micros" int;
        /// vCPUs of the type.
        19 CpuMilli "cpu-milli" int;
        /// Memory of the type.
        20 MemoryMib "memory-mib" int;
        /// GPUs of the type.
        21 Gpus "gpus" int;
        /// Model of its GPUs, such as `t4`.
        22 GpuName "gpu-name" word;
        /// Memory of one GPU.
        23 GpuMemoryMib "gpu-memory-mib" int;
        /// Accelerators that are no GPUs: Inferentia, Trainium.
        24 Accelerators "accelerators" int;
        /// Model of those accelerators.
        25 AcceleratorName "accelerator-name" word;
        /// Baseline network bandwidth.
        26 NetworkMbps "network-mbps" int;
        /// Local NVMe storage.
        27 LocalNvmeGib "local-nvme-gib" int;
        /// Whether its CPU runs on credits.
        28 Burstable "burstable" bool;
        /// Whether it is a flex type, which cannot use its whole CPU for long.
        29 Flex "flex" bool;
        /// Whether it is a bare-metal type.
        30 BareMetal "bare-metal" bool;
        /// Capacity reservation it would use; empty when it is not reserved.
        31 ReservationId "reservation-id" word;
        /// Instances left in that reservation.
        32 ReservationLeft "reservation-left" int;
        /// Interruptions seen in this spot pool.
        33 Interruptions "interruptions" int;
        /// Hours those interruptions were counted over; few hours mean little is known.
        34 ExposureHours "exposure-hours" int;
        /// Since this pool last answered that it has no capacity; -1 when it never did.
        35 SoldOutSeconds "sold-out-seconds" int;
        /// Highest spot price of the last 24 hours.
        36 SpotMax24hMicros "spot-max-24h-micros" int;
        /// Free addresses of the subnets in its zone, rounded down by at most an eighth; -1 when not known, as in simulations.
        37 FreeAddresses "free-addresses" int;
        /// CPU that pods can request.
        38 AllocatableCpuMilli "allocatable-cpu-milli" int;
        /// Memory that pods can request.
        39 AllocatableMemoryMib "allocatable-memory-mib" int;
        /// Pods it can run.
        40 AllocatablePods "allocatable-pods" int;
        /// CPU its DaemonSets take.
        41 DaemonCpuMilli "daemon-cpu-milli" int;
        /// Memory its DaemonSets take.
        42 DaemonMemoryMib "daemon-memory-mib" int;
        /// Pods of the asker it would hold if it held nothing else.
        43 HoldsPods "holds-pods" int;
    } open {
        /// Value of this label of the node; empty when it has none.
        44 Label "label" word;
    }
}

table! {
    /// Classes of pods that want a node, or would have to move.
    AskerColumn "askers" {
        /// Namespace of the pods.
        0 Namespace "namespace" word;
        /// Kind of their controller, such as `ReplicaSet`; empty for bare pods.
        1 OwnerKind "owner-kind" word;
        /// Name of the workload they belong to.
        2 Workload "workload" word;
        /// CPU one pod requests.
        3 CpuMilli "cpu-milli" int;
        /// Memory one pod requests, rounded up.
        4 MemoryMib "memory-mib" int;
        /// GPUs one pod requests.
        5 Gpus "gpus" int;
        /// Pods of this class that ask now.
        6 Count "count" int;
        /// Pods that the workload keeps, as its controller has made them: those neither ending nor ended; 0 without a controller.
        7 DesiredReplicas "desired-replicas" int;
        /// Priority of the pods.
        8 Priority "priority" int;
        /// Whether they mount persistent volumes.
        9 HasVolume "has-volume" bool;
        /// Their termination grace period.
        10 TerminationGraceSeconds "termination-grace-seconds" int;
        /// How long the oldest of them has been pending; 0 when none is.
        11 OldestPendingSeconds "oldest-pending-seconds" int;
    } open {
        /// Value of this label of the pods; empty when they have none.
        12 Label "label" word;
        /// Value of this annotation of the pods.
        13 Annotation "annotation" word;
        /// Value of this label of their namespace.
        14 NamespaceLabel "namespace-label" word;
        /// What one pod requests of this extended resource.
        15 Request "request" int;
    }
}

table! {
    /// What the cluster is made of, planned nodes included: one row for each mix, key, value, capacity type, zone and family that occurs, in the order of the mixes' numbers.
    MixRowColumn "mix" {
        /// Number of the mix, as named by a candidate or a move.
        0 Mix "mix" int;
        /// Which of the asked mix keys the row counts by, such as `node-pool` or `label:team`.
        1 Key "key" word;
        /// Value of that key.
        2 Value "value" word;
        /// `spot`, `on-demand` or `reserved`.
        3 CapacityType "capacity-type" word;
        /// Availability zone.
        4 Zone "zone" word;
        /// Family of the types.
        5 Family "family" word;
        /// Nodes; one that holds several values counts in each of them.
        6 Nodes "nodes" int;
        /// Pods, without those of DaemonSets.
        7 Pods "pods" int;
        /// CPU those pods request.
        8 CpuMilli "cpu-milli" int;
        /// What the nodes cost by list and spot price, shared out by requests.
        9 ListMicros "list-micros" int;
        /// The same by the policies' cost.
        10 CostMicros "cost-micros" int;
    } open {
    }
}

table! {
    /// Moves that the engine found; the rows to score. A move of kind `expired` or `rebalance` has score 0 and is made when a policy scores it above that: nobody else asks for it.
    MoveColumn "moves" {
        /// `empty`, `underutilized`, `drifted`; `expired`, in the last quarter of a node's life (eight days at most), after which it goes whatever is answered; or `rebalance`, after EC2 advised to leave a node.
        0 Kind "kind" word;
        /// Why the engine proposes it, in a few words.
        1 Reason "reason" word;
        /// Which mix it is judged against: the cluster without the nodes it removes.
        2 Mix "mix" int;
        /// Score after the judges before this one.
        3 Score "score" int;
        /// Nodes that would go.
        4 Nodes "nodes" int;
        /// Nodes that would be bought for them.
        5 Replacements "replacements" int;
        /// Pods that would have to move.
        6 Pods "pods" int;
        /// What it saves by list and spot price; for the kinds `drifted`, `expired` and `rebalance` what its node costs, for what is bought instead is planned once it may be made.
        7 SavingsListMicros "savings-list-micros" int;
        /// What it saves by cost.
        8 SavingsCostMicros "savings-cost-micros" int;
        /// What it saves by rank.
        9 SavingsRankMicros "savings-rank-micros" int;
        /// Estimate of how long the nodes take to drain.
        10 DrainSeconds "drain-seconds" int;
        /// Evictions the tightest PodDisruptionBudget still allows; -1 when none applies.
        11 PdbSlack "pdb-slack" int;
        /// For drift: hash of the configuration that nodes are brought to.
        12 TargetDigest "target-digest" word;
        /// Nodes that already have that configuration.
        13 TargetNodes "target-nodes" int;
        /// Age of the oldest of them; 0 when there is none.
        14 TargetAgeSeconds "target-age-seconds" int;
        /// How many of them are not ready.
        15 TargetNotReady "target-not-ready" int;
        /// How many launches with it failed.
        16 TargetFailures "target-failures" int;
    } open {
    }
}

table! {
    /// The nodes that moves would remove, in the order of the moves.
    MoveNodeColumn "move-nodes" {
        /// The move.
        0 Move "move" row;
        /// Name of the node.
        1 Name "name" word;
        /// Its NodePool.
        2 NodePool "node-pool" word;
        /// Its instance type.
        3 InstanceType "instance-type" word;
        /// Family of its type.
        4 Family "family" word;
        /// Its zone.
        5 Zone "zone" word;
        /// `spot`, `on-demand` or `reserved`.
        6 CapacityType "capacity-type" word;
        /// What it costs by list or spot price.
        7 ListMicros "list-micros" int;
        /// The same by cost.
        8 CostMicros "cost-micros" int;
        /// Its rank.
        9 RankMicros "rank-micros" int;
        /// Its age.
        10 AgeSeconds "age-seconds" int;
        /// When it expires, negative when that has passed; 10^12 when it never does.
        11 ExpiresSeconds "expires-seconds" int;
        /// Requested share of its allocatable CPU.
        12 CpuUsedPermille "cpu-used-permille" int;
        /// Requested share of its allocatable memory.
        13 MemoryUsedPermille "memory-used-permille" int;
        /// Since pods of it were last moved here by a move; -1 when never.
        14 LastMovedSeconds "last-moved-seconds" int;
        /// Moves its pods went through in the last 24 hours.
        15 Moves24h "moves-24h" int;
    } open {
        /// Value of this label of the node; empty when it has none.
        16 Label "label" word;
    }
}

table! {
    /// The pods that moves would evict, by class and node, in the order of the moves.
    MovePodColumn "move-pods" {
        /// The move.
        0 Move "move" row;
        /// The node they run on.
        1 Node "node" row;
        /// Their class.
        2 Asker "asker" row;
        /// How many.
        3 Count "count" int;
        /// Age of the youngest.
        4 YoungestSeconds "youngest-seconds" int;
        /// Age of the oldest.
        5 OldestSeconds "oldest-seconds" int;
        /// Container restarts of all of them.
        6 Restarts "restarts" int;
        /// Sum of their eviction costs, as Karpenter weighs them, in thousandths.
        7 RestartCost "restart-cost" int;
    } open {
    }
}

table! {
    /// The share each NodePool has in a move, in the order of the moves.
    MovePoolColumn "move-pools" {
        /// The move.
        0 Move "move" row;
        /// The NodePool.
        1 NodePool "node-pool" word;
        /// Its nodes that would go.
        2 Nodes "nodes" int;
        /// What those nodes cost.
        3 CostMicros "cost-micros" int;
        /// Disruption cost of those nodes, in thousandths.
        4 DisruptionCost "disruption-cost" int;
        /// All nodes of the NodePool.
        5 PoolNodes "pool-nodes" int;
        /// What all of them cost.
        6 PoolCostMicros "pool-cost-micros" int;
        /// Disruption cost of all of them, in thousandths.
        7 PoolDisruptionCost "pool-disruption-cost" int;
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
