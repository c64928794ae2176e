//! Cron schedules as disruption budgets write them: five fields in UTC, or one of the macros. Whole integers only: a
//! schedule and a time have one answer on every machine.
//!
//! What must not enter: clocks, what a schedule is for.

use whittle_model::Timestamp;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// No schedule that can come true rests longer: the 29th of February may be eight years away.
const FAR: i64 = 9 * 366;

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both kinds of day are restricted: then either will do.
    either: bool,
}

impl Cron {
    /// Reads a schedule.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!("{text:?} is no schedule: it has {} fields instead of 5", fields.len()));
        };
        let free = |field: &str| field.starts_with('*') || field.starts_with('?');
        Ok(Self {
            minutes: set(minute, 0, 59, &[])?,
            hours: set(hour, 0, 23, &[])?,
            days: set(day, 1, 31, &[])?,
            months: set(month, 1, 12, &MONTHS)?,
            weekdays: set(weekday, 0, 6, &WEEKDAYS)?,
            either: !free(day) && !free(weekday),
        })
    }

    /// The last time not after `now` at which it strikes.
    pub(super) fn last(&self, now: Timestamp) -> Option<Timestamp> {
        let (today, within) = (now.0.div_euclid(DAY), now.0.rem_euclid(DAY) / MINUTE);
        (0..FAR).find_map(|back| {
            let day = today - back;
            let latest = if back == 0 { within } else { 24 * 60 - 1 };
            let minute = self.strikes_on(day).then(|| (0..=latest).rev().find(|minute| self.strikes_at(*minute)))??;
            Some(Timestamp(day * DAY + minute * MINUTE))
        })
    }

    /// The first time after `now` at which it strikes.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let (today, within) = (now.0.div_euclid(DAY), now.0.rem_euclid(DAY) / MINUTE);
        (0..FAR).find_map(|ahead| {
            let day = today + ahead;
            let earliest = if ahead == 0 { within + 1 } else { 0 };
            let minute = self.strikes_on(day).then(|| (earliest..24 * 60).find(|minute| self.strikes_at(*minute)))??;
            Some(Timestamp(day * DAY + minute * MINUTE))
        })
    }

    fn strikes_at(&self, minute: i64) -> bool {
        has(self.hours, minute / 60) && has(self.minutes, minute % 60)
    }

    fn strikes_on(&self, day: i64) -> bool {
        let (_, month, of_month) = Timestamp(day * DAY).date();
        // The first of January 1970 was a Thursday.
        let (by_date, by_week) = (has(self.days, of_month), has(self.weekdays, (day + 4).rem_euclid(7)));
        has(self.months, month) && if self.either { by_date || by_week } else { by_date && by_week }
    }
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

fn has(set: u64, member: i64) -> bool {
    set >> member & 1 == 1
}

/// The members of one field: a list of ranges with steps.
fn set(field: &str, least: u32, most: u32, names: &[&str]) -> Result<u64, String> {
    let mut all = 0u64;
    for part in field.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step: u32 = step.map_or(Ok(1), str::parse).map_err(|_| wrong(part))?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (least, most),
            Some((from, to)) => (number(from, least, names)?, number(to, least, names)?),
            None => {
                let from = number(range, least, names)?;
                (from, if part.contains('/') { most } else { from })
            }
        };
        if step == 0 || from < least || to > most || from > to {
            return Err(wrong(part));
        }
        (from..=to).step_by(step as usize).for_each(|member| all |= 1 << member);
    }
    Ok(all)
}

fn number(text: &str, least: u32, names: &[&str]) -> Result<u32, String> {
    let named = names.iter().zip(least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
    named.map_or_else(|| text.parse().map_err(|_| wrong(text)), |(_, number)| Ok(number))
}

fn wrong(part: &str) -> String {
    format!("{part:?} cannot be read in a schedule")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minutes since 1970 of a date, found by walking the days.
    fn at(year: i64, month: i64, of_month: i64, hour: i64, minute: i64) -> Timestamp {
        let start = (year - 1970) * 365 + (year - 1969) / 4;
        let day = (start..start + 366).find(|day| Timestamp(day * DAY).date() == (year, month, of_month)).expect("the year has this day");
        Timestamp(day * DAY + (hour * 60 + minute) * MINUTE)
    }

    #[test]
    fn schedules_strike_when_cron_says() {
        let rows = [
            ("0 9 * * 1-5", at(2026, 8, 21, 10, 0), at(2026, 8, 21, 9, 0), at(2026, 8, 24, 9, 0)),
            ("0 9 * * mon-fri", at(2026, 8, 22, 10, 0), at(2026, 8, 21, 9, 0), at(2026, 8, 24, 9, 0)),
            ("*/15 * * * *", at(2026, 8, 21, 10, 14), at(2026, 8, 21, 10, 0), at(2026, 8, 21, 10, 15)),
            ("5/20 3 * * *", at(2026, 8, 21, 4, 0), at(2026, 8, 21, 3, 45), at(2026, 8, 22, 3, 5)),
            ("@monthly", at(2026, 8, 21, 0, 0), at(2026, 8, 1, 0, 0), at(2026, 9, 1, 0, 0)),
            ("@yearly", at(2026, 1, 1, 0, 0), at(2026, 1, 1, 0, 0), at(2027, 1, 1, 0, 0)),
            ("0 0 29 2 *", at(2026, 8, 21, 0, 0), at(2024, 2, 29, 0, 0), at(2028, 2, 29, 0, 0)),
            // Both kinds of day: either will do.
            ("0 0 13 * 5", at(2026, 8, 12, 0, 0), at(2026, 8, 7, 0, 0), at(2026, 8, 13, 0, 0)),
            ("30 23 31 12 *", at(2026, 3, 1, 0, 0), at(2025, 12, 31, 23, 30), at(2026, 12, 31, 23, 30)),
        ];
        for (text, now, last, next) in rows {
            let cron = Cron::parse(text).expect("it can be read");
            assert_eq!((cron.last(now), cron.next(now)), (Some(last), Some(next)), "{text}");
        }
        assert_eq!(Cron::parse("0 0 31 2 *").map(|cron| cron.next(Timestamp(0))), Ok(None), "it never comes");
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in
            ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "*/0 * * * *", "5-1 * * * *", "@often"]
        {
            assert!(Cron::parse(text).is_err(), "{text}");
        }
    }
}
