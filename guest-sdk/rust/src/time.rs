// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

/// A point in time, in milliseconds. Kubernetes writes it as a string in RFC 3339 with
/// seconds, `2026-01-01T00:00:00Z`, and so does this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    unix_ms: i64,
}

impl Time {
    /// The time that many milliseconds after the start of 1970.
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        Time { unix_ms }
    }

    /// Milliseconds since the start of 1970.
    pub const fn unix_ms(self) -> i64 {
        self.unix_ms
    }

    /// The start of the second.
    #[must_use]
    pub const fn to_seconds(self) -> Self {
        Time { unix_ms: self.unix_ms.div_euclid(1000) * 1000 }
    }

    /// The time that has passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.unix_ms.saturating_sub(earlier.unix_ms)).unwrap_or(0))
    }

    /// Parses a time in RFC 3339, with any offset; `None` if it is invalid.
    pub fn parse(s: &str) -> Option<Self> {
        let b = s.as_bytes();
        if b.len() < 20 || b[4] != b'-' || b[7] != b'-' || !b"Tt ".contains(&b[10]) || b[13] != b':' || b[16] != b':' {
            return None;
        }
        let n = |from: usize, to: usize| digits(&b[from..to]);
        let (year, month, day) = (n(0, 4)?, n(5, 7)?, n(8, 10)?);
        let (hour, minute, second) = (n(11, 13)?, n(14, 16)?, n(17, 19)?);
        let month_ok = (1..=12).contains(&month);
        if !month_ok || day < 1 || day > month_days(year, month) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (ms, rest) = fraction(&b[19..])?;
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(rest)?;
        Some(Time { unix_ms: seconds * 1000 + ms })
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Time;

    fn add(self, d: Duration) -> Time {
        let ms = i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        Time { unix_ms: self.unix_ms.saturating_add(ms) }
    }
}

fn digits(b: &[u8]) -> Option<i64> {
    b.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + i64::from(c - b'0')))
}

/// The milliseconds after the seconds, and the remaining bytes.
fn fraction(b: &[u8]) -> Option<(i64, &[u8])> {
    if b.first() != Some(&b'.') {
        return Some((0, b));
    }
    let n = b[1..].iter().take_while(|c| c.is_ascii_digit()).count();
    let ms = (0..3).fold(0, |ms, i| ms * 10 + if i < n { i64::from(b[1 + i] - b'0') } else { 0 });
    (n > 0).then_some((ms, &b[1 + n..]))
}

/// The offset of local time, in seconds.
fn offset(b: &[u8]) -> Option<i64> {
    match b {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let seconds = digits(&[*h1, *h2])? * 3600 + digits(&[*m1, *m2])? * 60;
            Some(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => None,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from the start of 1970 to a day of the Gregorian calendar. Years begin in March
/// here, so that a leap day is the last day of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month > 2 { year } else { year - 1 };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + day_of_year - 719_468
}

/// The reverse of `days`.
fn date(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.unix_ms.div_euclid(1000);
        let (year, month, day) = date(seconds.div_euclid(86_400));
        let s = seconds.rem_euclid(86_400);
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let s = String::deserialize(d)?;
        Time::parse(&s).ok_or_else(|| D::Error::custom("is not a time in RFC 3339"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_reads_back() {
        for day in -146_097..146_097i64 {
            let t = Time::from_unix_ms(day * 86_400_000 + 1000 * (day.rem_euclid(86_400)));
            assert_eq!(Time::parse(&t.to_string()), Some(t));
        }
    }

    #[test]
    fn offsets_and_fractions_are_read() {
        let t = Time::from_unix_ms(1_767_225_600_120);
        for s in ["2026-01-01T00:00:00.12Z", "2026-01-01T02:30:00.1209+02:30", "2025-12-31T23:00:00.120-01:00"] {
            assert_eq!(Time::parse(s), Some(t), "{s}");
        }
        assert_eq!(t.to_seconds().to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for s in [
            "",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
        ] {
            assert_eq!(Time::parse(s), None, "{s}");
        }
    }
}
