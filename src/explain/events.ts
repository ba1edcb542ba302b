// The warnings among the Events of an object.
import { countOf, recordOf, textOf, todoIf, type Finding, type SeenObject, type Subject } from './finding.ts'
import { remedyOf } from './remedies.ts'

/** Warnings that are older say nothing about the present. */
const recentMs = 60 * 60_000
const maxWarnings = 5

/** The newest warnings about any of `uids`, one for each reason and message. */
export function warningNotes(events: readonly SeenObject[], subject: Subject, nowMs: number): Finding[] {
  const recent = events
    .filter(({ type, ...event }) => type === 'Warning' && nowMs - timeMsOf(event as SeenObject) < recentMs)
    .sort((one, other) => timeMsOf(other) - timeMsOf(one))
  const byText = new Map(
    recent.reverse().map((event) => [`${textOf(event['reason'])} ${textOf(event['message'])}`, event]),
  )
  return [...byText.values()]
    .reverse()
    .slice(0, maxWarnings)
    .map((event) => noteOf(event, subject))
}

/** Whether an Event is about an object with one of these uids. */
export function isAbout(event: SeenObject, uids: ReadonlySet<string>): boolean {
  return uids.has(textOf(recordOf(event['involvedObject'] ?? event['regarding'])['uid']))
}

/** When an Event happened last, in Unix milliseconds. */
function timeMsOf(event: SeenObject): number {
  return Date.parse(timeOf(event))
}

function timeOf(event: SeenObject): string {
  const { lastObservedTime } = recordOf(event['series'])
  const texts = [lastObservedTime, event['lastTimestamp'], event['eventTime'], event.metadata.creationTimestamp].map(
    textOf,
  )
  return texts.find((text) => text !== '') ?? ''
}

function noteOf(event: SeenObject, subject: Subject): Finding {
  const reason = textOf(event['reason'])
  const { kind, name } = recordOf(event['involvedObject'] ?? event['regarding'])
  const count = countOf(event['count'])
  const times = count > 1 ? ` (${count} times)` : ''
  const about = textOf(name) === subject.name ? '' : ` of ${textOf(kind)} ${textOf(name)}`
  return {
    subject,
    state: 'note',
    what: `Event ${reason}${about}: ${textOf(event['message'])}${times}`,
    reason,
    since: timeOf(event),
    ...todoIf(remedyOf(reason)),
  }
}
