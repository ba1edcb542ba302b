// spec.access of MemberClusters and LogicalClusters: the ServiceAccount as which others may use the cluster through kcp.
import type { JsonSchema } from './crd.ts'
import { systemNamespace } from './sync-contract.ts'

export interface ClusterAccess {
  serviceAccountRef: AccessAccount
}

export interface AccessAccount {
  namespace: string
  name: string
}

/** The group, the version and the subresource of the right to use a cluster through kcp. */
export const accessGroup = 'virtual.kcp.dev'
export const accessVersion = 'v1alpha1'
export const accessSubresource = 'access'

export function clusterAccessSchema(description: string): JsonSchema {
  return {
    type: 'object',
    description,
    required: ['serviceAccountRef'],
    properties: {
      serviceAccountRef: {
        type: 'object',
        description: 'The ServiceAccount. It is not created.',
        required: ['namespace', 'name'],
        properties: {
          namespace: {
            type: 'string',
            minLength: 1,
            maxLength: 63,
            pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
          },
          name: {
            type: 'string',
            minLength: 1,
            maxLength: 253,
            pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
          },
        },
        'x-kubernetes-validations': [
          {
            rule: `self.__namespace__ != '${systemNamespace}'`,
            message: 'the ServiceAccounts of kcp itself are not for others',
          },
        ],
      },
    },
  }
}
