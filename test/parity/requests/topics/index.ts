// All topics, the most common requests first.
import type { Topic } from '#test/parity/requests/row.ts'
import { compression } from './compression.ts'
import { conditional } from './conditional.ts'
import { impersonation } from './impersonation.ts'
import { positions } from './positions.ts'
import { reviews } from './reviews.ts'
import { spellings } from './spellings.ts'
import { corners } from './corners.ts'
import { creates } from './creates.ts'
import { deletes } from './deletes.ts'
import { fieldValidation } from './field-validation.ts'
import { lists } from './lists.ts'
import { negotiation } from './negotiation.ts'
import { patches } from './patches.ts'
import { paths } from './paths.ts'
import { scanners } from './scanners.ts'
import { subresources } from './subresources.ts'
import { updates } from './updates.ts'
import { watches } from './watches.ts'

export const topics: readonly Topic[] = [
  lists,
  creates,
  updates,
  patches,
  deletes,
  watches,
  negotiation,
  fieldValidation,
  paths,
  positions,
  conditional,
  compression,
  reviews,
  impersonation,
  spellings,
  corners,
  subresources,
  scanners,
]
