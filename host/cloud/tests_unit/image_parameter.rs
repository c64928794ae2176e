//! Paths of published image ids, against those in AWS's documentation.

use super::*;

fn page(alias: &str, kubernetes: &str) -> Vec<String> {
    let alias: Alias = alias.parse().expect("the alias of a table is well formed");
    let line = |parameter: ImageParameter| {
        let variants: Vec<String> = parameter.variants.iter().map(|variant| format!("{variant:?}")).collect();
        format!("{} {}{}", parameter.path, variants.join("+"), if parameter.mutable { "" } else { " fixed" })
    };
    alias.parameters(kubernetes).into_iter().map(line).collect()
}

#[test]
fn paths_are_those_that_aws_publishes() {
    assert_eq!(
        page("al2@latest", "1.31"),
        [
            "/aws/service/eks/optimized-ami/1.31/amazon-linux-2/recommended/image_id Standard",
            "/aws/service/eks/optimized-ami/1.31/amazon-linux-2-arm64/recommended/image_id Standard",
            "/aws/service/eks/optimized-ami/1.31/amazon-linux-2-gpu/recommended/image_id Neuron+Nvidia",
        ]
    );
    assert_eq!(
        page("al2@v20250801", "1.31"),
        [
            "/aws/service/eks/optimized-ami/1.31/amazon-linux-2/amazon-eks-node-1.31-v20250801/image_id Standard fixed",
            "/aws/service/eks/optimized-ami/1.31/amazon-linux-2-arm64/amazon-eks-arm64-node-1.31-v20250801/image_id Standard fixed",
            "/aws/service/eks/optimized-ami/1.31/amazon-linux-2-gpu/amazon-eks-gpu-node-1.31-v20250801/image_id Neuron+Nvidia fixed",
        ]
    );
    let al2023 = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023";
    assert_eq!(
        page("al2023@latest", "1.34"),
        [
            format!("{al2023}/x86_64/standard/recommended/image_id Standard"),
            format!("{al2023}/x86_64/nvidia/recommended/image_id Nvidia"),
            format!("{al2023}/x86_64/neuron/recommended/image_id Neuron"),
            format!("{al2023}/arm64/standard/recommended/image_id Standard"),
            format!("{al2023}/arm64/nvidia/recommended/image_id Nvidia"),
        ]
    );
    assert_eq!(
        page("al2023@v20250801", "1.34")[1],
        format!("{al2023}/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.34-v20250801/image_id Nvidia fixed")
    );
    assert_eq!(
        page("bottlerocket@v1.46.0", "1.34"),
        [
            "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.46.0/image_id Standard+Neuron fixed",
            "/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.46.0/image_id Standard fixed",
            "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.46.0/image_id Nvidia fixed",
            "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.46.0/image_id Nvidia fixed",
        ]
    );
    assert_eq!(
        page("windows2022@latest", "1.34"),
        ["/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id Windows(\"10.0.20348\")"]
    );
}

#[test]
fn a_variant_says_which_types_it_boots() {
    let page = |variant: Variant, architecture: &str| -> Vec<String> {
        let line = |requirement: AmiRequirement| {
            let values = requirement.values.map(|values| format!(" {}", values.join(","))).unwrap_or_default();
            format!("{} {}{values}", requirement.key, requirement.operator)
        };
        variant.requirements_with(architecture).into_iter().map(line).collect()
    };
    assert_eq!(
        page(Variant::Standard, "x86_64"),
        [
            "karpenter.k8s.aws/instance-accelerator-count DoesNotExist",
            "karpenter.k8s.aws/instance-gpu-count DoesNotExist",
            "kubernetes.io/arch In amd64",
        ]
    );
    assert_eq!(page(Variant::Nvidia, "arm64"), ["karpenter.k8s.aws/instance-gpu-count Exists", "kubernetes.io/arch In arm64"]);
    assert_eq!(page(Variant::Neuron, "x86_64")[0], "karpenter.k8s.aws/instance-accelerator-count Exists");
    assert_eq!(
        page(Variant::Windows("10.0.20348"), "x86_64"),
        ["kubernetes.io/os In windows", "node.kubernetes.io/windows-build In 10.0.20348", "kubernetes.io/arch In amd64"]
    );
}
