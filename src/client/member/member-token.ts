// The token by which the installation reaches a member: short-lived, requested anew before half of its life is over.
import { decodeJwt } from 'jose'
import { parseDocument } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { memberParts, systemNamespace } from '#crds/index.ts'

const serviceAccounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const
const tokenPath = ['users', 0, 'user', 'token']
const expirationSeconds = 24 * 3600

/** Requests a token of the syncer's ServiceAccount for the member's own API, valid for a day. Rejects with StatusError. */
export async function requestMemberToken(member: Pick<KubeClient, 'create'>, signal: AbortSignal): Promise<string> {
  const request: KubeObject = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: memberParts.syncerAccount, namespace: systemNamespace },
    spec: { expirationSeconds },
  }
  const answer = await member.create<KubeObject>(serviceAccounts, request, { subresource: 'token', signal })
  const { token } = (answer['status'] ?? {}) as { token?: string }
  if (token === undefined) throw new Error('the member answered a TokenRequest without a token')
  return token
}

/**
 * True if the kubeconfig has a token of the syncer's ServiceAccount of which half of its life is over. False for tokens that do
 * not expire, as joining made them before, and for credentials that somebody else keeps.
 */
export function isMemberTokenDue(kubeconfig: string, nowMs: number): boolean {
  try {
    const token: unknown = parseDocument(kubeconfig).getIn(tokenPath)
    if (typeof token !== 'string') return false
    const { sub, iat, exp } = decodeJwt(token)
    if (sub !== `system:serviceaccount:${systemNamespace}:${memberParts.syncerAccount}`) return false
    return iat !== undefined && exp !== undefined && nowMs / 1000 >= (iat + exp) / 2
  } catch {
    return false
  }
}

/** The kubeconfig with another token. */
export function withMemberToken(kubeconfig: string, token: string): string {
  const document = parseDocument(kubeconfig)
  document.setIn(tokenPath, token)
  return document.toString()
}
