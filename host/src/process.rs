//! What the operating system says of this process, under the names every Prometheus client uses. What must not
//! enter: metrics of our own.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks a second: fixed by the kernel's interface on all architectures we are built for.
const TICKS: f64 = 100.0;
/// Bytes of a page, likewise.
const PAGE: i64 = 4096;

/// Reads `/proc/self` at each scrape; says nothing where there is none.
#[derive(Debug)]
pub struct Process;

struct Read {
    cpu_seconds: f64,
    resident_bytes: i64,
    open_files: i64,
}

fn read() -> Option<Read> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program stands in parentheses and may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|text| text.parse::<i64>().ok());
    let (user, system, pages) = (number(11)?, number(12)?, number(21)?);
    let open_files = std::fs::read_dir("/proc/self/fd").map_or(0, |all| i64::try_from(all.count()).unwrap_or(i64::MAX));
    Some(Read { cpu_seconds: (user + system) as f64 / TICKS, resident_bytes: pages.saturating_mul(PAGE), open_files })
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(read) = read() else { return Ok(()) };
        let mut put = |name: &str, help: &str, metric: &dyn Encode| metric.put(&mut encoder, name, help);
        put("process_cpu_seconds", "User and system time", &ConstCounter::new(read.cpu_seconds))?;
        put("process_resident_memory_bytes", "Resident memory", &ConstGauge::new(read.resident_bytes))?;
        put("process_open_fds", "Open file descriptors", &ConstGauge::new(read.open_files))
    }
}

/// A metric whose type does not matter to the list above.
trait Encode {
    fn put(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> std::fmt::Result;
}

impl<M: EncodeMetric> Encode for M {
    fn put(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> std::fmt::Result {
        self.encode(encoder.encode_descriptor(name, help, None, self.metric_type())?)
    }
}
