//! Processes that are started and ended: each leads a group of its own, and the group is ended, so that nothing stays
//! behind and nothing else is touched. What must not enter: what is run.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

/// Leaders of the groups that are ours to end.
static OURS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn ours() -> MutexGuard<'static, BTreeSet<u32>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process_group(pid, signal);
    }
}

/// Ends all groups and the program when it is told to stop.
///
/// # Errors
/// When signals cannot be listened for.
pub(crate) fn end_all_when_told() -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(signal_hook::consts::TERM_SIGNALS)?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for leader in ours().iter() {
                signal_group(*leader, Signal::KILL);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// A process with its log.
#[derive(Debug)]
pub(crate) struct Process {
    /// What it is called in the bed; its log is NAME.log.
    pub(crate) name: String,
    /// Where it writes.
    pub(crate) log: PathBuf,
    child: Child,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a command in `dir`; its log is `dir`/`name`.log, written on when it is there.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn spawn(name: &str, dir: &Path, command: &mut Command) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let err = out.try_clone()?;
        let command = command.current_dir(dir).stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        ours().insert(child.id());
        Ok(Self { name: name.to_owned(), log, child, ended: None })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Says no when it has ended, with the end of its log.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn is_alive(&mut self) -> Result<()> {
        let ended = self.ended();
        ensure!(ended.is_none(), "{} ended with {:?}; its log ends:\n{}", self.name, ended, tail(&self.log, 12));
        Ok(())
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        signal_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
        ours().remove(&self.pid());
    }

    /// Ends it at once, for good.
    pub(crate) fn crash(mut self) {
        self.kill();
    }

    /// Halts it where it stands, or lets it go on.
    pub(crate) fn halt(&self, halted: bool) {
        signal_group(self.pid(), if halted { Signal::STOP } else { Signal::CONT });
    }

    /// Asks it to end, and ends it when it does not within `patience`. Says whether it ended by itself.
    pub(crate) fn stop(&mut self, patience: Duration) -> bool {
        signal_group(self.pid(), Signal::TERM);
        let deadline = Instant::now() + patience;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let by_itself = self.ended.is_some();
        self.kill();
        by_itself
    }

    /// Lets it run when this program ends, and says how to find it again: process id and the time of its start.
    pub(crate) fn leave(mut self) -> Result<(u32, u64)> {
        let (pid, _) = (self.pid(), self.is_alive()?);
        ours().remove(&pid);
        let started = started(pid).context("it has just ended")?;
        std::mem::forget(self);
        Ok((pid, started))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if ours().contains(&self.pid()) {
            if let Some(status) = self.ended() {
                crate::say(&format!("{} ended by itself with {status}", self.name));
            }
            self.stop(Duration::from_secs(5));
        }
    }
}

/// When a process was started, in ticks since the machine was: tells it from another that got its id.
fn started(pid: u32) -> Option<u64> {
    stat_field(pid, 19)
}

/// A number of `/proc/PID/stat`, counted from behind the name of the program.
pub(crate) fn stat_field(pid: u32, at: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold spaces.
    stat.rsplit_once(')')?.1.split_whitespace().nth(at)?.parse().ok()
}

/// Ends a process that was left running, unless it has ended and another has its id.
pub(crate) fn end_left(pid: u32, when: u64) {
    let is_it = || started(pid) == Some(when);
    signal_group_if(is_it(), pid, Signal::TERM);
    let deadline = Instant::now() + Duration::from_secs(8);
    while is_it() && stat_is_not_zombie(pid) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    signal_group_if(is_it(), pid, Signal::KILL);
}

fn stat_is_not_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn signal_group_if(sure: bool, leader: u32, signal: Signal) {
    if sure {
        signal_group(leader, signal);
    }
}

/// The last lines of a file.
pub(crate) fn tail(file: &Path, lines: usize) -> String {
    let text = std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Runs a command to its end and answers with what it printed.
///
/// # Errors
/// When it fails: the command and what it said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let leader = child.id();
    ours().insert(leader);
    let out = child.wait_with_output();
    ours().remove(&leader);
    let out = out?;
    let (answer, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    ensure!(out.status.success(), "`{}` failed with {}: {} {answer:.2000}", line(command), out.status, said.trim());
    Ok(answer.into_owned())
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|a| a.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}
