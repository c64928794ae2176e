//! Whether AWS would allow a launch from a class: its launch template is made, then a fleet and an instance are asked for
//! without being made. A dry run needs a template that exists; it has a name of its own, so that it can be deleted
//! afterwards without regard to launches.
//!
//! What must not enter: what is remembered of the answers.

use aws_sdk_ec2::types::{
    DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
    FleetLaunchTemplateSpecificationRequest, FleetOnDemandAllocationStrategy, FleetType, InstanceNetworkInterfaceSpecification,
    LaunchTemplateSpecification, OnDemandOptionsRequest, ResourceType, Tag, TagSpecification, TargetCapacitySpecificationRequest,
};

use super::resolved::Subnet;
use crate::{Aws, CloudError, ErrorKind, image::TemplateSpec};

const VERSION: &str = "$Latest";
/// What follows the name that the template has in a launch.
const TRIAL: &str = "-trial";

/// What AWS says.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The launch would be allowed.
    Allowed,
    /// It would not.
    Refused {
        /// In one word.
        reason: &'static str,
        /// Why and what to do.
        message: String,
    },
    /// EC2 does not know the instance profile.
    ProfileMissing,
    /// AWS did not say.
    Pending(CloudError),
}

/// Asks for each step of a launch.
pub(super) async fn run(aws: &Aws, class: &str, spec: &TemplateSpec, instance_type: &str, subnets: &[Subnet]) -> Outcome {
    let object = format!("for EC2NodeClass {class}");
    if let Err(error) = create_template(aws, &object, spec).await {
        return outcome("CreateLaunchTemplateAuthCheckFailed", error);
    }
    let outcome = launch(aws, &object, spec, instance_type, subnets).await;
    if let Err(error) = delete_template(aws, &object, spec).await {
        // It carries the cluster's tags, by which templates out of use are found after the next start.
        tracing::debug!(error = %error, "a launch template of a dry run stays");
    }
    outcome
}

async fn launch(aws: &Aws, object: &str, spec: &TemplateSpec, instance_type: &str, subnets: &[Subnet]) -> Outcome {
    if let Err(error) = create_fleet(aws, object, spec, instance_type, subnets).await {
        return outcome("CreateFleetAuthCheckFailed", error);
    }
    let mut first = None;
    for subnet in subnets {
        match run_instances(aws, object, spec, instance_type, subnet).await {
            // What one subnet lacks another may have.
            Ok(()) => return Outcome::Allowed,
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Outcome::Allowed, |error| outcome("RunInstancesAuthCheckFailed", error))
}

fn outcome(reason: &'static str, error: CloudError) -> Outcome {
    if error.code == "InvalidUserData.Malformed" && error.message.contains("User data is limited to") {
        return Outcome::Refused { reason: "UserDataSizeLimitExceeded", message: format!("{error}; shorten spec.userData") };
    }
    if error.code == "InvalidParameterValue" && error.message.contains("Invalid IAM Instance Profile name") {
        return Outcome::ProfileMissing;
    }
    // Only these say that the rights are missing; expired credentials and the like are another matter.
    if !["UnauthorizedOperation", "AccessDenied"].contains(&error.code.as_str()) {
        return Outcome::Pending(error);
    }
    // AWS appends kilobytes of it, which only AWS can read.
    let why = error.message.split("Encoded authorization failure message").next().unwrap_or_default().trim_end();
    Outcome::Refused { reason, message: CloudError { message: why.to_owned(), ..error }.to_string() }
}

/// The one error that a dry run answers when all is well.
fn allowed<T>(answer: Result<T, CloudError>) -> Result<(), CloudError> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.kind == ErrorKind::DryRunOk => Ok(()),
        Err(error) => Err(error),
    }
}

fn name(spec: &TemplateSpec) -> String {
    spec.name() + TRIAL
}

async fn create_template(aws: &Aws, object: &str, spec: &TemplateSpec) -> Result<(), CloudError> {
    let request = aws
        .ec2
        .create_launch_template()
        .launch_template_name(name(spec))
        .launch_template_data(spec.data())
        .tag_specifications(spec.template_tags());
    match aws.call("CreateLaunchTemplate", object, || request.clone().send()).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

async fn delete_template(aws: &Aws, object: &str, spec: &TemplateSpec) -> Result<(), CloudError> {
    let request = aws.ec2.delete_launch_template().launch_template_name(name(spec));
    match aws.call("DeleteLaunchTemplate", object, || request.clone().send()).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

async fn create_fleet(aws: &Aws, object: &str, spec: &TemplateSpec, instance_type: &str, subnets: &[Subnet]) -> Result<(), CloudError> {
    let template = FleetLaunchTemplateSpecificationRequest::builder().launch_template_name(name(spec)).version(VERSION).build();
    let of_subnet =
        |subnet: &Subnet| FleetLaunchTemplateOverridesRequest::builder().instance_type(instance_type.into()).subnet_id(&subnet.id).build();
    let config = FleetLaunchTemplateConfigRequest::builder()
        .launch_template_specification(template)
        .set_overrides(Some(subnets.iter().map(of_subnet).collect()))
        .build();
    let target = TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(1)
        .default_target_capacity_type(DefaultTargetCapacityType::OnDemand)
        .build();
    let options = OnDemandOptionsRequest::builder().allocation_strategy(FleetOnDemandAllocationStrategy::LowestPrice).build();
    let request = aws
        .ec2
        .create_fleet()
        .dry_run(true)
        .r#type(FleetType::Instant)
        .launch_template_configs(config)
        .target_capacity_specification(target)
        .on_demand_options(options)
        .set_tag_specifications(Some(tagged(spec, &[ResourceType::Instance, ResourceType::Volume, ResourceType::Fleet])));
    allowed(aws.call("CreateFleet", &format!("{object}, dry"), || request.clone().send()).await)
}

async fn run_instances(aws: &Aws, object: &str, spec: &TemplateSpec, instance_type: &str, subnet: &Subnet) -> Result<(), CloudError> {
    let interface = |nic: &crate::image::Interface| {
        InstanceNetworkInterfaceSpecification::builder()
            .set_network_card_index(nic.card)
            .device_index(nic.device)
            .set_interface_type(nic.kind.clone())
            .subnet_id(&subnet.id)
            .build()
    };
    let request = aws
        .ec2
        .run_instances()
        .dry_run(true)
        .min_count(1)
        .max_count(1)
        .instance_type(instance_type.into())
        .launch_template(LaunchTemplateSpecification::builder().launch_template_name(name(spec)).version(VERSION).build())
        .set_network_interfaces(Some(spec.interfaces.iter().map(interface).collect()))
        .set_tag_specifications(Some(tagged(spec, &[ResourceType::Instance, ResourceType::Volume, ResourceType::NetworkInterface])));
    allowed(aws.call("RunInstances", &format!("{object} in {}, dry", subnet.id), || request.clone().send()).await)
}

fn tagged(spec: &TemplateSpec, kinds: &[ResourceType]) -> Vec<TagSpecification> {
    let tags: Vec<Tag> = spec.tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect();
    kinds.iter().map(|kind| TagSpecification::builder().resource_type(kind.clone()).set_tags(Some(tags.clone())).build()).collect()
}
