// The headers that tell an aggregated API server the user of a request (requestheader authentication of
// k8s.io/apiserver).
import type { UserInfo } from '#virtualapi/request/user-info.ts'

/** The X-Remote headers of a user. Values are the bytes of UTF-8, each as one character, as Node writes headers. */
export function identityHeaders({
  name,
  uid,
  groups,
  extra,
}: Pick<UserInfo, 'name' | 'uid' | 'groups' | 'extra'>): Record<string, string | string[]> {
  return {
    'x-remote-user': bytesOf(name),
    ...(uid === undefined || uid === '' ? {} : { 'x-remote-uid': bytesOf(uid) }),
    ...(groups.length === 0 ? {} : { 'x-remote-group': groups.map(bytesOf) }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [`x-remote-extra-${escapeKey(key)}`, values.map(bytesOf)]),
    ),
  }
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Percent-encodes the characters that a header name may not contain (RFC 9110, 5.6.2), and the percent sign. */
function escapeKey(key: string): string {
  return bytesOf(key).replace(
    /[^!#$&'*+.^_`|~0-9A-Za-z-]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}
