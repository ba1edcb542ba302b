// The cookie of a session.
import { consoleCookie as cookieName } from '#virtualapi/request/console-cookie.ts'
import { valuesOf } from './same-origin.ts'

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
