// ServiceAccounts: of references to Secrets, only the name is stored.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'

const mountableOnly = 'kubernetes.io/enforce-mountable-secrets'

export const serviceAccountRules: KindRules = {
  prepareForCreate: keepNames,
  prepareForUpdate: keepNames,
  warningsOf: ({ metadata }, old) =>
    metadata.annotations?.[mountableOnly] === undefined || old?.metadata.annotations?.[mountableOnly] !== undefined
      ? []
      : [
          `metadata.annotations[${mountableOnly}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
        ],
}

function keepNames(object: KubeObject): void {
  const secrets = (object['secrets'] ?? []) as readonly { name?: string }[]
  if (secrets.length > 0) object['secrets'] = secrets.map(({ name }) => (name === undefined ? {} : { name }))
}
