// The cookie of a session. The prefix `__Host-` makes browsers take it from this host alone, over TLS, for all paths;
// it counts below /console only, and is passed on to nobody.
import { valuesOf } from './same-origin.ts'

export const cookieName = '__Host-kcp-console'
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Strict'

/** The value of Set-Cookie that begins or renews a session, which ends with the browser at the latest. */
export function cookieOf(sealed: string): string {
  return `${cookieName}=${sealed}; ${attributes}`
}

/** The value of Set-Cookie that ends a session in the browser. */
export const endedCookie = `${cookieName}=; ${attributes}; Max-Age=0`

/** The sealed session of the request; undefined without the cookie, or with several of its name. */
export function sealedSession(rawHeaders: readonly string[]): string | undefined {
  const found = valuesOf(rawHeaders, 'cookie')
    .flatMap((header) => header.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${cookieName}=`))
  return found.length === 1 ? found[0]?.slice(cookieName.length + 1) : undefined
}
