"""What an EKS cluster has in an account: tagged subnets, security groups, the node role, the queue, the cluster, image parameters.

usage: seed.py AWS_URL CLUSTER
"""
import json, sys, urllib.request

import boto3

url, name = sys.argv[1:3]
client = lambda service: boto3.client(service, endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
ec2, iam, sqs, eks = map(client, ("ec2", "iam", "sqs", "eks"))

subnets = ec2.describe_subnets()["Subnets"]
groups = [ec2.create_security_group(GroupName=g, Description=g, VpcId=subnets[0]["VpcId"])["GroupId"] for g in ("node", "shared")]
ec2.create_tags(Resources=[s["SubnetId"] for s in subnets] + groups, Tags=[{"Key": "karpenter.sh/discovery", "Value": name}])
named = [(s["SubnetId"], "subnet-" + s["AvailabilityZone"]) for s in subnets] + list(zip(groups, ("group-node", "group-shared")))
for resource, label in named:
    ec2.create_tags(Resources=[resource], Tags=[{"Key": "Name", "Value": label}])
iam.create_role(RoleName=f"KarpenterNodeRole-{name}", AssumeRolePolicyDocument="{}")
queue = sqs.create_queue(QueueName=name)["QueueUrl"]

images = [i for i in ec2.describe_images(Owners=["amazon"])["Images"] if "al2023" in i["Name"]]
image = {arch: next(i["ImageId"] for i in images if i["Architecture"] == arch) for arch in ("x86_64", "arm64")}
versions = ("1.34", "1.35", "1.36")
ssm = {f"/aws/service/eks/optimized-ami/{v}/amazon-linux-2023/{a}/standard/recommended/image_id": i for v in versions for a, i in image.items()}
ssm |= {f"/aws/service/bottlerocket/aws-k8s-{v}/{a}/latest/image_id": i for v in versions for a, i in image.items()}
urllib.request.urlopen(urllib.request.Request(url + "/_ctl", data=json.dumps({"ssm": ssm}).encode(), method="POST")).read()

eks.create_cluster(name=name, roleArn="arn:aws:iam::123456789012:role/cluster", version="1.36", resourcesVpcConfig={"subnetIds": [s["SubnetId"] for s in subnets]})
print(json.dumps({"queue": queue, "images": image, "groups": groups, "subnets": {s["AvailabilityZone"]: s["SubnetId"] for s in subnets}}))
