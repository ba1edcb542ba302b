// The 403 response of authorization, as kube-apiserver writes it.
import { goQuote } from '#apimachinery/text/index.ts'
import { forbidden, StatusError } from '#apimachinery/status/index.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'

/** `User "bob" cannot list resource "pods" in API group "" in the namespace "x"`, as in kube-apiserver. */
export function forbiddenMessage(user: { readonly name: string }, { verb, resource, path }: Attributes): string {
  const who = `User ${goQuote(user.name)} cannot ${verb}`
  if (resource === undefined) return `${who} path ${goQuote(path ?? '')}`
  const what = resource.subresource === '' ? resource.resource : `${resource.resource}/${resource.subresource}`
  const where = resource.namespace === '' ? 'at the cluster scope' : `in the namespace ${goQuote(resource.namespace)}`
  return `${who} resource ${goQuote(what)} in API group ${goQuote(resource.group)} ${where}`
}

/** The 403 error. It is the same whether the object or the logical cluster exists or not. */
export function forbiddenError(user: { readonly name: string }, attributes: Attributes, reason = ''): StatusError {
  const message = forbiddenMessage(user, attributes)
  const { group = '', resource = '', name = '' } = attributes.resource ?? {}
  return withNosniff(forbidden({ group, resource }, name, reason === '' ? message : `${message}: ${reason}`))
}

/** Adds the nosniff header, as kube-apiserver does on authorization errors. */
function withNosniff({ status }: StatusError): StatusError {
  return new StatusError(status, { headers: { 'X-Content-Type-Options': 'nosniff' } })
}
