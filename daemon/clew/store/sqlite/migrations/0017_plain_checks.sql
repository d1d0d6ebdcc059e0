-- The same states and moves as before, in words that cost nothing: for a list of three or more SQLite builds a table, for every row it checks.

PRAGMA writable_schema = ON;                        -- a CHECK can be changed in no other way without copying the rows

UPDATE sqlite_schema SET sql = replace(replace(sql,
  'kind IN (''message'', ''command'', ''control'', ''answer'', ''edit'', ''delete'', ''notice'', ''job'')',
  'kind = ''message'' OR kind = ''command'' OR kind = ''control'' OR kind = ''answer'' OR kind = ''edit'' OR kind = ''delete'''
  || ' OR kind = ''notice'' OR kind = ''job'''),
  'state IN (''new'', ''claimed'', ''answered'', ''refused'', ''failed'', ''context'')',
  'state = ''new'' OR state = ''claimed'' OR state = ''answered'' OR state = ''refused'' OR state = ''failed'' OR state = ''context''')
WHERE type = 'table' AND name = 'inbox';

UPDATE sqlite_schema SET sql = replace(sql,
  'state IN (''running'', ''waiting'', ''done'', ''failed'', ''stopped'')',
  'state = ''running'' OR state = ''waiting'' OR state = ''done'' OR state = ''failed'' OR state = ''stopped''')
WHERE type = 'table' AND name = 'turns';

UPDATE sqlite_schema SET sql = replace(sql,
  'role IN (''user'', ''assistant'', ''tool'')',
  'role = ''user'' OR role = ''assistant'' OR role = ''tool''')
WHERE type = 'table' AND name = 'messages';

UPDATE sqlite_schema SET sql = replace(sql,
  'state IN (''proposed'', ''waiting'', ''denied'', ''started'', ''done'', ''interrupted'')',
  'state = ''proposed'' OR state = ''waiting'' OR state = ''denied'' OR state = ''started'' OR state = ''done'' OR state = ''interrupted''')
WHERE type = 'table' AND name = 'tool_calls';

UPDATE sqlite_schema SET sql = replace(sql,
  'state IN (''draft'', ''pending'', ''sending'', ''sent'', ''unknown'', ''dead'')',
  'state = ''draft'' OR state = ''pending'' OR state = ''sending'' OR state = ''sent'' OR state = ''unknown'' OR state = ''dead''')
WHERE type = 'table' AND name = 'outbox';

UPDATE sqlite_schema SET sql = replace(sql,
  'reason IN (''quiet'', ''task'', ''topic'')',
  'reason = ''quiet'' OR reason = ''task'' OR reason = ''topic''')
WHERE type = 'table' AND name = 'boundaries';

PRAGMA writable_schema = RESET;

DROP TRIGGER inbox_moves;
CREATE TRIGGER inbox_moves BEFORE UPDATE OF state ON inbox
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
  WHEN 'new' THEN NEW.state IN ('claimed', 'refused')
  WHEN 'claimed' THEN NEW.state IN ('answered', 'failed')
  ELSE false
END
BEGIN SELECT raise(ABORT, 'an arrival does not move so'); END;

DROP TRIGGER turns_move;
CREATE TRIGGER turns_move BEFORE UPDATE OF state ON turns
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
  WHEN 'running' THEN true
  WHEN 'waiting' THEN NEW.state = 'running'
  ELSE false
END
BEGIN SELECT raise(ABORT, 'a turn does not move so'); END;

DROP TRIGGER outbox_moves;
CREATE TRIGGER outbox_moves BEFORE UPDATE OF state ON outbox
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
  WHEN 'draft' THEN NEW.state = 'pending'
  WHEN 'pending' THEN NEW.state = 'sending'
  WHEN 'sending' THEN NEW.state IN ('pending', 'sent') OR NEW.state IN ('unknown', 'dead')
  WHEN 'unknown' THEN NEW.state = 'pending'
  WHEN 'dead' THEN NEW.state = 'pending'
  ELSE false
END
BEGIN SELECT raise(ABORT, 'a reply does not move so'); END;

-- Models that give every call of a turn the same id begin it anew.
DROP TRIGGER tool_calls_move;
CREATE TRIGGER tool_calls_move BEFORE UPDATE OF state ON tool_calls
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
  WHEN 'proposed' THEN NEW.state IN ('waiting', 'started') OR NEW.state = 'denied'
  WHEN 'waiting' THEN NEW.state IN ('started', 'denied')
  WHEN 'started' THEN NEW.state IN ('done', 'denied') OR NEW.state = 'interrupted'
  WHEN 'done' THEN NEW.state IN ('started', 'proposed')
  WHEN 'denied' THEN NEW.state IN ('started', 'proposed')
  WHEN 'interrupted' THEN NEW.state IN ('started', 'proposed')
END
BEGIN SELECT raise(ABORT, 'a tool call does not move so'); END;
