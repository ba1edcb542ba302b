// Secrets: the write-only stringData is merged into data.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import { secretCauses, secretChangeCauses } from './config.ts'
import { keyPairWarnings } from '#virtualapi/kinds/warnings/key-pair-warnings.ts'

export const secretRules: KindRules = {
  warningsOf: keyPairWarnings,
  beforeDefaults: moveStringData,
  validate: secretCauses,
  validateChange: secretChangeCauses,
}

function moveStringData(secret: KubeObject): void {
  const { stringData, data } = secret
  delete secret['stringData']
  if (!isJsonObject(stringData)) return
  const encoded = Object.entries(stringData).map(([key, text]) => [
    key,
    Buffer.from(typeof text === 'string' ? text : '').toString('base64'),
  ])
  secret['data'] = { ...(isJsonObject(data) ? data : {}), ...(Object.fromEntries(encoded) as Record<string, string>) }
}
