// The session of the console's own server. Its cookie is httpOnly: the page never has a token.
import { signal } from '@preact/signals'
import { ApiError, messageOf, onSignedOut, requestJson, request } from '#console/kube/request.ts'

export interface Session {
  readonly user: string
  readonly groups?: readonly string[]
  readonly realm: 'installation' | 'host' | { readonly cluster: string }
  readonly expires?: string
  /** Path of the API with LogicalClusters and MemberClusters, if this session may list them. */
  readonly home?: string
}

/** `undefined`: not known yet. `null`: signed out. */
export const session = signal<Session | null | undefined>(undefined)
export const signInError = signal('')

export function startSession(): void {
  onSignedOut(() => {
    session.value = null
  })
}

/** Tries again while there is no connection, as when a laptop changes its network: a ticket is worth it. */
async function insisting<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof ApiError || tries >= maxTries) throw error
      await new Promise((resolve) => setTimeout(resolve, 300 * tries))
    }
  }
}

const maxTries = 5

/** Reads the session of the cookie, if there is one. */
export async function readSession(): Promise<void> {
  try {
    session.value = await insisting(() => requestJson<Session>('api/session'))
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) signInError.value = messageOf(error)
    session.value = null
  }
}

/** Signs in by a ticket, or by a token with the logical cluster that it is for. */
export async function signIn(credentials: { ticket: string } | { token: string; cluster?: string }): Promise<void> {
  signInError.value = ''
  try {
    await insisting(() => request('api/session', { method: 'POST', body: JSON.stringify(credentials) }))
    await readSession()
  } catch (error) {
    signInError.value = messageOf(error)
    session.value = null
  }
}

export async function signOut(): Promise<void> {
  await request('api/session', { method: 'DELETE' }).catch(() => undefined)
  session.value = null
}

/** The only logical cluster of the session, whose rows do not name it; empty for a session of several. */
export function onlyCluster(): string {
  const realm = session.value?.realm
  return typeof realm === 'object' ? realm.cluster : ''
}
