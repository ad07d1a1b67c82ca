// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// Kubernetes writes times in UTC with seconds: "2006-01-02T15:04:05Z". Package
// time handles that form too, but is several times slower in a guest.

// parseTime is time.Parse for RFC 3339.
func parseTime(s []byte) (time.Time, error) {
	if t, ok := parseUTC(s); ok {
		return t, nil
	}
	return time.Parse(time.RFC3339, string(s))
}

// parseUTC parses a time of that form. It returns false for other forms.
func parseUTC(s []byte) (t time.Time, ok bool) {
	if len(s) != 20 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[19] != 'Z' {
		return t, false
	}
	century, year, month, day := number(s), number(s[2:]), number(s[5:]), number(s[8:])
	hour, minute, second := number(s[11:]), number(s[14:]), number(s[17:])
	if max(century, year) > 99 || month-1 > 11 || day-1 > 30 || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	if day > 28 && day > daysOf(100*century+year, month) {
		return t, false
	}
	days := daysUntil(int64(100*century+year), int64(month)) + int64(day) - 1
	return time.Unix(days*86400+int64(hour*3600+minute*60+second), 0).UTC(), true
}

// daysOf returns the number of days of a month.
func daysOf(year, month uint) uint {
	return uint(daysUntil(int64(year), int64(month)+1) - daysUntil(int64(year), int64(month))) //nolint:gosec // 28 to 31
}

// daysUntil returns the number of days from 1970 to the start of a month, which
// may be the 13th. Years begin in March here, so that a leap day is the last
// day of its year.
func daysUntil(year, month int64) int64 {
	if month > 2 {
		month -= 3
	} else {
		year, month = year-1, month+9
	}
	year += 400 // avoid negative numbers
	return year*365 + year/4 - year/100 + year/400 + (153*month+2)/5 - (719468 + 400*365 + 97)
}

// number parses two digits. The result is above 99 if they are not digits.
func number(s []byte) uint {
	tens, ones := uint(s[0])-'0', uint(s[1])-'0'
	if tens > 9 || ones > 9 {
		return 1000
	}
	return 10*tens + ones
}

// appendTime appends a time in UTC, with seconds.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return AppendString(dst, t.Format(time.RFC3339))
	}
	hour, minute, second := t.Clock()
	dst = append(dst, 0xa0|20, '0'+byte(year/1000), '0'+byte(year/100%10))
	dst = appendNumber(appendNumber(appendNumber(dst, year%100, '-'), int(month), '-'), day, 'T')
	return appendNumber(appendNumber(appendNumber(dst, hour, ':'), minute, ':'), second, 'Z')
}

// appendNumber appends two digits and the separator after them.
func appendNumber(dst []byte, n int, after byte) []byte {
	return append(dst, '0'+byte(n/10), '0'+byte(n%10), after)
}
