-- Every message that comes is written to each index of the inbox: those that few rows need hold these alone. How many wait in a chat is
-- told by the index, which knows what nobody waits for an answer to.
DROP INDEX inbox_turn;
CREATE INDEX inbox_turn ON inbox (turn) WHERE turn IS NOT NULL;
DROP INDEX inbox_waiting;
CREATE INDEX inbox_waiting ON inbox (chat, id, overheard) WHERE state = 'new' AND kind <> 'job';
CREATE INDEX inbox_expiring ON inbox (expires) WHERE state = 'new' AND kind <> 'job' AND expires IS NOT NULL;
CREATE INDEX turns_jobs ON turns (chat) WHERE kind = 'job' AND state IN ('running', 'waiting');
