import { installWithoutHost } from './installation.ts'
import { endLabAfterAll } from './lab.ts'
import { tellStory } from './story.ts'

endLabAfterAll()
tellStory('without a host: kcp start', installWithoutHost)
