//! Windows of time: days of the week, a part of the day, from and until a moment. Reads no clock.

use exequatur_proto::policy::v1::TimeWindow;

const DAY: i64 = 1440;

/// A compiled window.
#[derive(Debug)]
pub(crate) struct Window {
    /// Bit per day, Monday first.
    days: u8,
    from: i64,
    to: i64,
    offset: i64,
    not_before: Option<i64>,
    not_after: Option<i64>,
}

impl Window {
    /// Compiles a window.
    ///
    /// # Errors
    /// Says what to write instead.
    pub(crate) fn compile(window: &TimeWindow) -> Result<Self, String> {
        let ascending = window.days.windows(2).all(|w| matches!(w, [a, b] if a < b));
        if !ascending || window.days.iter().any(|d| !(1..=7).contains(d)) {
            return Err("days are mon to sun, each once".to_owned());
        }
        if window.from_minute >= 1440 || window.to_minute >= 1440 {
            return Err("a time of day is 00:00 to 23:59".to_owned());
        }
        if window.offset_minutes.abs() > 840 {
            return Err("the offset from UTC is at most 14 hours".to_owned());
        }
        let moment = |s: u64| match s {
            0 => Ok(None),
            s => i64::try_from(s).map(Some).map_err(|_| "a moment is too late".to_owned()),
        };
        let (not_before, not_after) = (moment(window.not_before_s)?, moment(window.not_after_s)?);
        if let (Some(a), Some(b)) = (not_before, not_after)
            && a >= b
        {
            return Err("the window ends before it begins".to_owned());
        }
        let days = window.days.iter().fold(0, |bits, day| bits | (1 << (day - 1)));
        Ok(Self {
            days: if days == 0 { 0x7f } else { days },
            from: i64::from(window.from_minute),
            to: i64::from(window.to_minute),
            offset: i64::from(window.offset_minutes) * 60,
            not_before,
            not_after,
        })
    }

    /// Whether a moment, in seconds since 1970, is in it: the first moment is, the end is not.
    pub(crate) fn contains(&self, seconds: i64) -> bool {
        if self.not_before.is_some_and(|s| seconds < s) || self.not_after.is_some_and(|s| seconds >= s) {
            return false;
        }
        let minutes = seconds.saturating_add(self.offset).div_euclid(60);
        let (day, minute) = (minutes.div_euclid(DAY), minutes.rem_euclid(DAY));
        // 1970-01-01 was a Thursday.
        let on = |day: i64| self.days & (1 << (day + 3).rem_euclid(7)) != 0;
        if self.from == self.to {
            on(day)
        } else if self.from < self.to {
            on(day) && (self.from..self.to).contains(&minute)
        } else {
            // Over midnight, the window belongs to the day on which it begins.
            (minute >= self.from && on(day)) || (minute < self.to && on(day - 1))
        }
    }
}
