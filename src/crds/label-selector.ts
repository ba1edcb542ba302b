// metav1.LabelSelector as a field of our kinds.
import type { JsonSchema } from './crd.ts'

export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[]
}

/** The schema of a LabelSelector; `description` tells what it selects and what an empty selector means. */
export function labelSelectorSchema(description: string): JsonSchema {
  return {
    type: 'object',
    description,
    'x-kubernetes-map-type': 'atomic',
    properties: {
      matchLabels: {
        type: 'object',
        description: 'Labels that must all be there with these values.',
        additionalProperties: { type: 'string' },
      },
      matchExpressions: {
        type: 'array',
        description: 'Requirements that must all hold.',
        'x-kubernetes-list-type': 'atomic',
        items: {
          type: 'object',
          required: ['key', 'operator'],
          properties: {
            key: { type: 'string' },
            operator: { type: 'string', enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'] },
            values: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'atomic' },
          },
        },
      },
    },
  }
}
