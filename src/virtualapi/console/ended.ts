// What all processes of an installation have to know of sessions: the sign-in links that were used, and the sessions
// that were ended before their time. Pure: a state and its changes. The size of a state is bounded.
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { tooManyRequests } from '#apimachinery/status/index.ts'
import type { Session, SessionIdentity, Ticket } from './session.ts'

type Times = Readonly<Record<string, number>>

export interface Ended {
  /** Used sign-in links by id, with the end of their validity. */
  readonly used: Times
  /** Ended sessions by scope and id, with the time at which they would have ended anyhow. */
  readonly sessions: Readonly<Record<string, Times>>
  /** All sessions of a scope that began before this time have ended. */
  readonly before: Times
}

export const nothingEnded: Ended = { used: {}, sessions: {}, before: {} }

/** Sign-in links used within five minutes, and sessions ended within eight hours: of one scope, and of all. */
const [maxUsed, maxOfScope, maxSessions] = [500, 50, 1500]
/** Scopes all of whose sessions were ended. Above it, the sessions of everybody end. */
const maxScopes = 1000
const everybody = '*'

/** Whose sessions are counted together: those of one logical cluster, of the host, or of the installation. */
function scopeOf(identity: SessionIdentity): string {
  if (identity.as === 'installation') return 'installation'
  return identity.as === 'hostToken' ? 'host' : identity.cluster
}

export function isEnded({ sessions, before }: Ended, { id, identity, beganMs }: Session): boolean {
  const scope = scopeOf(identity)
  if (sessions[scope]?.[id] !== undefined) return true
  return beganMs < Math.max(before[scope] ?? 0, before[everybody] ?? 0)
}

/** The state after the ticket was used; undefined if it was used before. Throws 429 while too many were. */
export function withTicket(state: Ended, { id, endsMs }: Ticket, nowMs: number): Ended | undefined {
  if (state.used[id] !== undefined) return undefined
  const current = withoutPast(state, nowMs)
  if (Object.keys(current.used).length >= maxUsed)
    throw tooManyRequests('too many sign-in links were used in the last five minutes, please try again later', 60)
  return { ...current, used: { ...current.used, [id]: endsMs } }
}

/**
 * The state after the session was ended. Where too many sessions of a scope were ended, all sessions of this scope that
 * began until now end with it, so that nobody can fill the state.
 */
export function withSession(state: Ended, { id, identity, endsMs }: Session, nowMs: number): Ended {
  const scope = scopeOf(identity)
  const current = withoutPast(state, nowMs)
  const sessions = { ...current.sessions, [scope]: { ...current.sessions[scope], [id]: endsMs } }
  if (countOf(sessions[scope]) > maxOfScope) return withScope({ ...current, sessions }, scope, nowMs)
  const all = Object.values(sessions).reduce((sum, times) => sum + countOf(times), 0)
  return all > maxSessions ? withScope({ ...current, sessions }, largestOf(sessions), nowMs) : { ...current, sessions }
}

/** The state after all sessions were ended. */
export function withEverybody({ used }: Ended, nowMs: number): Ended {
  return { used, sessions: {}, before: { [everybody]: nowMs } }
}

function withScope(state: Ended, scope: string, nowMs: number): Ended {
  const { [scope]: _, ...sessions } = state.sessions
  const before = { ...state.before, [scope]: nowMs }
  return countOf(before) > maxScopes ? withEverybody(state, nowMs) : { ...state, sessions, before }
}

function largestOf(sessions: Ended['sessions']): string {
  const [largest] = Object.entries(sessions).sort(([, a], [, b]) => countOf(b) - countOf(a))
  return largest?.[0] ?? everybody
}

function countOf(times: Times | undefined): number {
  return Object.keys(times ?? {}).length
}

/** The longest time for which a scope is remembered: no session is older. */
const rememberedMs = 9 * 60 * 60_000

function withoutPast({ used, sessions, before }: Ended, nowMs: number): Ended {
  const future = (times: Times, since = nowMs): Times =>
    Object.fromEntries(Object.entries(times).filter(([, at]) => at > since))
  const kept = Object.entries(sessions).map(([scope, times]) => [scope, future(times)] as const)
  return {
    used: future(used),
    sessions: Object.fromEntries(kept.filter(([, times]) => countOf(times) > 0)),
    before: future(before, nowMs - rememberedMs),
  }
}

/** The state of a text; nothing has ended if the text is absent. Throws for a damaged text. */
export function endedOf(text: string | undefined): Ended {
  if (text === undefined) return nothingEnded
  const value = parseJsonText(text)
  if (!isJsonObject(value)) throw new Error('the record of ended sessions of the console is no JSON object')
  const { used, sessions, before } = value
  const byScope = isJsonObject(sessions) ? sessions : {}
  return {
    used: timesOf(used),
    sessions: Object.fromEntries(Object.entries(byScope).map(([scope, times]) => [scope, timesOf(times)])),
    before: timesOf(before),
  }
}

function timesOf(value: JsonValue | undefined): Times {
  if (!isJsonObject(value)) return {}
  return Object.fromEntries(Object.entries(value).map(([key, at]) => [key, Number(at)]))
}
