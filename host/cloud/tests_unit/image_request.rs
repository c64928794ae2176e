//! What goes over the wire for the cases `template-*` under `tests/image`: `NAME.request`, one
//! parameter a line. The answers were compared with what Karpenter sends for the same cases.

use std::sync::{Arc, Mutex};

use aws_sdk_ec2::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_ec2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ec2::error::BoxError;

use super::*;
use crate::Aws;
use crate::image::case::Case;

/// Keeps the body of a call and lets nothing out.
#[derive(Debug, Clone, Default)]
struct Recorder(Arc<Mutex<String>>);

impl Intercept for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.request().body().bytes().unwrap_or_default();
        *self.0.lock().expect("one call writes") = String::from_utf8_lossy(body).into_owned();
        Err("nothing is sent".into())
    }
}

async fn sent(spec: &TemplateSpec) -> String {
    let aws = Aws::for_test("http://127.0.0.1:9", "eu-west-1").await.expect("a region is given");
    let recorder = Recorder::default();
    let call = aws.ec2.create_launch_template().launch_template_name("NAME").client_token("TOKEN");
    let call = call.launch_template_data(spec.data()).tag_specifications(spec.template_tags());
    let answer = call.customize().interceptor(recorder.clone()).send().await;
    assert!(answer.is_err(), "the recorder stops the call");
    let body = recorder.0.lock().expect("the call is over").clone();
    let line = |pair: &str| format!("{}\n", decoded(pair).replacen('=', ": ", 1));
    let told = ["Action=", "Version=", "ClientToken=", "LaunchTemplateName=", "LaunchTemplateData.UserData="];
    let mut lines: Vec<String> = body.split('&').filter(|pair| !told.iter().any(|start| pair.starts_with(start))).map(line).collect();
    lines.sort();
    lines.concat()
}

/// Percent signs undone.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at(2);
        out.push(u8::from_str_radix(code, 16).map_or('?', char::from));
        out.push_str(rest);
    }
    out
}

#[tokio::test]
async fn requests_say_what_the_template_says() {
    let mut checked = 0;
    for entry in std::fs::read_dir(Case::folder()).expect("the cases are part of the sources") {
        let path = entry.expect("the folder can be read").path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if path.extension().is_none_or(|kind| kind != "request") {
            continue;
        }
        let (spec, _) = Case::read(name).template().expect("every case is well formed");
        let golden = std::fs::read_to_string(&path).expect("the answer is a text");
        assert_eq!(sent(&spec).await, golden, "{name}");
        assert!(golden.lines().count() <= 60, "{name}");
        checked += 1;
    }
    assert!(checked >= 7, "{checked} answers were found");
}

#[tokio::test]
async fn user_data_goes_as_base64_and_only_where_there_is_some() {
    let (mut spec, user_data) = Case::read("custom").template().expect("the case is well formed");
    assert_eq!(spec.data().user_data(), Some(user_data.base64().as_str()));
    spec.user_data.clear();
    assert_eq!(spec.data().user_data(), None);
    assert_eq!(spec.data().block_device_mappings, None, "EC2 refuses an empty list");
}
