// Which usages the signer of client certificates accepts.

/** Why the signer kubernetes.io/kube-apiserver-client refuses these usages, in upstream's words; undefined if it does not. */
export function usageError(usages: readonly string[]): string | undefined {
  const invalid = usages.find((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage))
  if (invalid !== undefined) return `invalid usage for client certificate: ${invalid}`
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth'
}
