// Lines of an audit log for people: who did what, to which object, with what result.
import { auditPositionAnnotation } from '#crds/index.ts'

export interface AuditLine {
  /** Unique in the log. */
  readonly key: string
  /** From where a reader goes on; undefined if the event does not say it. */
  readonly position: string | undefined
  readonly time: string
  readonly user: string
  readonly verb: string
  /** Empty while the request is under way. */
  readonly code: string
  readonly isRefused: boolean
  readonly object: string
  readonly request: string
  /** All of it, in lower case, for the filter. */
  readonly words: string
}

interface AuditEvent {
  readonly auditID?: string
  readonly stage?: string
  readonly verb?: string
  readonly requestURI?: string
  readonly user?: { readonly username?: string }
  readonly impersonatedUser?: { readonly username?: string }
  readonly objectRef?: {
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number }
  readonly requestReceivedTimestamp?: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** Longer addresses of requests are cut. */
const maxRequest = 500

/** The line of an event; undefined if it is none. */
export function auditLine(json: string): AuditLine | undefined {
  let event: AuditEvent | null
  try {
    event = JSON.parse(json) as AuditEvent | null
  } catch {
    return undefined
  }
  if (typeof event !== 'object' || event === null) return undefined
  const { auditID, stage = '', verb = '', requestURI = '', requestReceivedTimestamp: time = '' } = event
  if (auditID === undefined) return undefined
  const { resource = '', subresource = '', namespace = '', name = '' } = event.objectRef ?? {}
  const { username = '' } = event.user ?? {}
  const acting = event.impersonatedUser?.username
  const user = acting === undefined ? username : `${acting} (${username})`
  const object = [namespace, resource, name, subresource].filter((part) => part !== '').join('/')
  const code = event.responseStatus?.code
  const shown = { time, user, verb, code: String(code ?? ''), object, request: requestURI.slice(0, maxRequest) }
  return {
    key: `${auditID} ${stage}`,
    position: event.annotations?.[auditPositionAnnotation],
    ...shown,
    isRefused: code !== undefined && code >= 400,
    words: Object.values(shown).join(' ').toLowerCase(),
  }
}

/** The lines that have every word; a word with ! before it must not be there. */
export function matchingLines(lines: readonly AuditLine[], filter: string): AuditLine[] {
  const wanted = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '' && word !== '!')
  return lines.filter(({ words }) =>
    wanted.every((word) => (word.startsWith('!') ? !words.includes(word.slice(1)) : words.includes(word))),
  )
}
