// Dates, times, sizes and numbers in the browser's language.

import { el } from "./dom.js";
import { texts } from "./texts.js";

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const number = new Intl.NumberFormat();
/** Of numbers only: "yesterday" is the day before today, and not what was more than 24 hours ago. */
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always" });
const now = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3600],
  ["minute", 60]];
const BYTE_UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/** A timestamp of the API with its time; `""` for `null`. */
export const formatDateTime = (text) => (text ? dateTime.format(new Date(text)) : "");
/** A timestamp of the API without its time. */
export const formatDate = (text) => (text ? date.format(new Date(text)) : "");
/**
 * A timestamp of the API as `format` writes it, marked as being in the browser's language: the rest of the page is
 * English, and screen readers change their voice. `null` for none.
 */
export const timeText = (text, format = formatDateTime) => text && el("time", { datetime: text, dir: "auto",
  lang: dateTime.resolvedOptions().locale,
  title: ![formatDateTime, formatHour].includes(format) && formatDateTime(text) }, format(text));
/** A day of the API, such as `2026-01-31`, which is one of UTC. */
export const formatDay = (text) => day.format(new Date(`${text}T00:00:00Z`));
/** The time of day of a moment in milliseconds, with seconds. */
export const formatClock = (milliseconds) => clock.format(milliseconds);
/** The time zone of the browser, such as `Europe/Berlin`, in which times are shown. */
export const { timeZone } = dateTime.resolvedOptions();
export const formatNumber = (value) => number.format(value);

/** A moment as the API takes it; a text that is none stays as it is, for the API to refuse. */
export function utcTime(text) {
  const moment = new Date(text);
  return text === "" || Number.isNaN(moment.getTime()) ? text : moment.toISOString();
}

/** A moment as fields for dates and times hold it, in the time zone of the browser. */
export function localTime(text) {
  const moment = new Date(text);
  if (text === "" || Number.isNaN(moment.getTime())) return "";
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, moment.getUTCSeconds() ? 19 : 16);
}

/** How long ago a timestamp of the API was, or how long it is until then, such as "3 hours ago". */
export function formatRelative(text) {
  if (!text) return "";
  const seconds = (new Date(text).getTime() - Date.now()) / 1000;
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return now.format(0, "second");
}

/** How long it is until a timestamp of the API, to the nearest day, hour or minute, such as "in 7 days". */
export function formatUntil(text) {
  const seconds = Math.max(0, (new Date(text).getTime() - Date.now()) / 1000);
  const [unit, length] = UNITS.slice(3).find(([, each]) => seconds / each > 0.99) ?? ["minute", 60];
  return relative.format(Math.round(seconds / length), unit);
}

/** A timestamp that the API has rounded down to the hour, as the hour in which the moment was. */
export function formatHour(text) {
  const hour = new Date(text).getTime();
  return Date.now() - hour < 3_600_000 ? texts.within_hour : dateTime.formatRange(hour, hour + 3_600_000);
}

/** A number of whole minutes in the largest unit of which it is a multiple, such as "7 days". */
export function formatDuration(minutes) {
  const unit = minutes % 1440 === 0 ? "day" : minutes % 60 === 0 ? "hour" : "minute";
  const format = new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: "long" });
  return format.format(minutes / { day: 1440, hour: 60, minute: 1 }[unit]);
}

/** A number of bytes in the unit that suits it (steps of 1,024, as the service counts); below ten with one decimal. */
export function formatBytes(bytes) {
  let value = bytes;
  let step = 0;
  while (value >= 1023.5 && step < BYTE_UNITS.length - 1) {
    value /= 1024;
    step += 1;
  }
  const digits = step > 0 && value < 9.95 ? 1 : 0;
  /** @type {Intl.NumberFormatOptions} */
  const options = { style: "unit", unit: BYTE_UNITS[step], unitDisplay: step ? "short" : "long" };
  return new Intl.NumberFormat(undefined, { ...options, maximumFractionDigits: digits }).format(value);
}
