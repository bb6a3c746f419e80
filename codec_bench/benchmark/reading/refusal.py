"""Answers that decline: no sound came with the question, the model cannot listen, or it will not answer.

In English, Chinese, German, French, Spanish, Italian, Portuguese, Japanese, Korean, Russian and Arabic. Only the opening
of an answer is looked at.
"""

from __future__ import annotations

import re

from codec_bench.benchmark.reading.grammar import cue
from codec_bench.benchmark.reading.mentions import folded

OPENING = 400
_SOUND = r"(?:audio\w*|sounds?|recordings?|voice (?:note|message|clip)s?|sound ?files?|(?:sound|audio)? ?clips?|files?|attachments?|speech)"
_CANNOT = r"(?:can't|cannot|can not|could not|couldn't|am unable to|'m unable to|am not able to|'m not able to|unable to|not able to|do not|don't)"
_LISTEN = r"(?:listen|hear|process|access|play|analy[sz]e|open|receive|transcribe|perceive|see)"
_NO_SOUND = re.compile(
    rf"(?<![\w'])(?:there (?:is|was|'s|isn't|seems to be|appears to be) (?:no|any|not any) {_SOUND}"
    rf"|no {_SOUND}(?: \w+)? (?:was|were|is|has been|have been|is being)? ?(?:provided|attached|included|given|received|uploaded|shared|present|found)"
    rf"|{_SOUND}(?: file)? (?:did not|didn't|has not|hasn't|have not|haven't|never) (?:come through|come with|arrived?|reach|reached|upload|uploaded|load|loaded|been (?:attached|included|uploaded|provided))\b"
    rf"|no {_SOUND} (?:reached|arrived|came through|came with|to (?:compare|judge|analy[sz]e|listen to|work with))|(?:audio|recording|sound|clip|file)(?: file)? (?:is|was|seems(?: to be)?|appears to be) (?:missing|not (?:attached|included|provided|there))(?=\W|\Z)(?! (?:bass|treble|frequenc))"
    rf"|{_CANNOT} (?:directly |actually |currently )?{_LISTEN} ?(?:to |into )?(?:the |any |an |your |this |these |that )?(?:\w+ )?{_SOUND}"
    rf"|(?:not|n't|never) (?:attached|provided|included|uploaded|shared|received?|get|got|find|see|have) (?:me )?(?:an?|any|the|your)? ?{_SOUND}"
    rf"|(?:ability|capability|capabilities|able) to (?:{_LISTEN}|directly {_LISTEN}) ?(?:to )?(?:\w+ )?{_SOUND}"
    rf"|please (?:provide|attach|upload|share|send|re-?upload)(?: me)?(?: the| an| your| a)?(?: \w+)? {_SOUND}"
    r"|as an? (?:ai|text|language|large language)[\w -]{0,30}(?:model|assistant|ai)?,? i (?:can't|cannot|am unable|'m unable|do not|don't))"
    r"|(?:无法|無法|不能|不会|不會|没办法|沒辦法)(?:直接)?(?:听|聽|收听|收聽|听取|聽取|处理|處理|播放|访问|訪問|获取|接收|识别|分析)[^。，]{0,6}?(?:音频|音頻|声音|聲音|录音|錄音|语音|語音|文件)"
    r"|(?:没有|沒有|未|并未|並未)[^。，]{0,6}?(?:收到|提供|附上|上传|上傳|听到|聽到|找到|附带|附帶|检测到)?[^。，]{0,4}?(?:音频|音頻|录音|錄音|语音文件|音檔)|请(?:提供|上传|发送|上傳|附上)[^。，]{0,4}(?:音频|音頻|录音|文件)|作为(?:一个|一名)?(?:AI|人工智能|语言模型|文本模型)|听不[了到见](?:任何)?(?:音频|录音|语音|声音)(?=[。，,.！!]|\Z)"
    r"|(?:音频|录音|语音)(?:文件)?(?:没有|没|并未|未)(?:能)?(?:被)?(?:成功)?(?:上传|附上|收到|提供|发送|加载)"
    r"|(?:keine?|nicht)\b[^.]{0,30}\b(?:audio\w*|aufnahmen?|tonaufnahmen?|sounds?)\b[^.]{0,30}\b(?:anhören|hören|verarbeiten|abspielen|angehängt|beigefügt|erhalten|vorhanden|öffnen)"
    r"|\b(?:laden|senden|schicken)\b[^.]{0,30}(?:audio\w*|aufnahme)|n'ai (?:pas )?reçu (?:de |le |l'|aucune? )[^.]{0,10}(?:fichier|enregistrement|audio)|no (?:he recibido|recibí|me llegó|se recibió)[^.]{0,20}(?:audio|archivo|grabaci)"
    r"|non ho ricevuto[^.]{0,20}(?:audio|file|registrazion)|não recebi[^.]{0,20}(?:áudio|arquivo|ficheiro|gravaç)|не получил\w*[^.]{0,20}(?:аудио|запис|файл)"
    r"|(?:音声|録音)[^。]{0,10}(?:受け取|届い|受信)[^。]{0,6}(?:ません|ない)|(?:오디오|음성|녹음|소리)[^.]{0,12}(?:받지 못|받지 않|업로드되지|전달되지)"
    r"|(?:höre|sehe|erhalte|habe|finde|bekomme|wurde|ist)\b[^.]{0,20}\bkeine?\s+(?:audio\w*|aufnahme|tonaufnahme)\b|keine\s+(?:audio\w*|aufnahme)[^.]{0,20}(?:mitgeschickt|gesendet|übermittelt|mitgeliefert|enthalten|dabei)"
    r"|(?:ne peux pas|ne suis pas en mesure d|incapable d)[^.]{0,25}(?:écouter|entendre|traiter|accéder|lire)[^.]{0,25}(?:audio|son|enregistrement)|aucun (?:fichier|enregistrement|contenu)? ?(?:audio|son)?[^.]{0,30}(?:fourni|joint|reçu|attaché)"
    r"|no puedo[^.]{0,25}(?:escuchar|oír|procesar|acceder|reproducir)[^.]{0,25}(?:audio|sonido|grabaci)|no se ha[^.]{0,20}(?:adjuntado|proporcionado|recibido)[^.]{0,20}(?:audio|archivo|grabaci)|ning(?:ún|una) (?:archivo|audio|grabación)"
    r"|non (?:posso|riesco a|sono in grado di)[^.]{0,25}(?:ascoltare|sentire|elaborare)[^.]{0,25}(?:audio|suon|registrazion)|nessun (?:file|audio)[^.]{0,30}(?:allegato|fornito|ricevuto)"
    r"|não (?:posso|consigo)[^.]{0,25}(?:ouvir|escutar|processar|acessar)[^.]{0,25}(?:áudio|som|gravaç)|nenhum (?:arquivo|áudio|ficheiro)[^.]{0,30}(?:anexado|fornecido|recebido)"
    r"|(?:音声|オーディオ|録音|音)[^。]{0,10}(?:聞くことができ|聴くことができ|聞けま|聴けま|再生できま|処理でき|添付され|提供され|ありません)|(?:오디오|음성|녹음|소리)[^.]{0,12}(?:들을 수 없|처리할 수 없|재생할 수 없|첨부되지|제공되지|없습니다)"
    r"|(?:не могу|не удалось|не умею|не имею возможности)[^.]{0,25}(?:прослуш|слуш|услыш|обработ|получ|воспроизв)[^.]{0,25}(?:аудио|звук|запис)|(?:аудио\w*|запись)[^.]{0,10}не[^.]{0,3}(?:прикрепл|предоставл|получ|приложен)"
    r"|لا (?:يمكنني|أستطيع)[^.]{0,25}(?:الاستماع|سماع|معالجة)|لم (?:يتم|أستلم|أتلق)[^.]{0,25}(?:صوت|ملف)",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    r"(?<![\w'])(?:i(?:'m| am) (?:very |so |really )?sorry,? (?:but )?(?:i )?(?:can't|cannot|can not|am unable|'m unable|won't)"
    r"|(?:sorry|apologies|unfortunately),? (?:but )?i (?:can't|cannot|can not|am unable|'m unable|am not able|'m not able|won't)"
    r"|i (?:can't|cannot|can not|won't) (?:help|assist|answer|comply|do that|provide)|i(?:'m| am) (?:unable|not able) to (?:help|assist|answer|comply|provide|do))"
    r"|(?:抱歉|对不起|對不起|很遗憾)[^。]{0,4}我?(?:无法|無法|不能|不会)|(?:我)?(?:无法|無法|不能)(?:回答|协助|協助|帮助|提供)"
    r"|es tut mir leid[^.]{0,12}(?:ich kann|kann ich)[^.]{0,30}nicht|désolé[^.]{0,12}je ne peux pas|lo siento[^.]{0,12}no puedo|mi dispiace[^.]{0,12}non posso"
    r"|desculpe[^.]{0,12}não (?:posso|consigo)|申し訳[^。]{0,20}(?:できません|できかね)|죄송[^.]{0,40}(?:없습니다|없어요)|извините[^.]{0,12}(?:не могу|не удалось)|عذر[^.]{0,20}لا",
    re.IGNORECASE,
)


def lacks_sound(text: str) -> bool:
    """Whether an answer says that no sound came, or that the model cannot listen."""
    return _NO_SOUND.search(folded(text[:OPENING])) is not None


_MISSING = re.compile(
    r"(?:audio\w*|sounds?|recordings?|clips?|files?|attachments?)\b.{0,20}\b(?:missing|silent|empty|blank)\b|(?:音频|录音|音声)(?:文件)?(?:是|为)?(?:空|静音|無音)"
    r"|\b(?:please|could you|can you)\b.{0,20}\b(?:provide|upload|attach|send|share|paste|re-?upload|describe)\b.{0,30}\b(?:audio|sound|recording|clip|file|transcript)"
    r"|请.{0,4}(?:提供|上传).{0,4}(?:音频|录音)|\b(?:won't|will not|can't|cannot|unable to|able to) (?:help|guess|identify|infer|analy[sz]e|judge|comment)\b.{0,60}\b(?:voices?|gender|emotions?|speaker|identity)\b"
    r"|\b(?:without|ohne|sans|sin) (?:the |any |an? |die |eine |l'|el |la )?(?:audio\w*|recording|aufnahme|enregistrement|grabación)\b.{0,25}\b(?:can't|cannot|kann ich|je ne|no puedo)\b"
    r"|\b(?:need|have|want|like) to (?:hear|listen to) (?:the|an|your|this|that) (?:audio\w*|sounds?|recordings?|clips?|files?)\b"
    r"|不能.{0,6}(?:根据|通过|仅凭)声音",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?。！？\n।]+")


def declines(text: str) -> bool:
    """Whether an answer declines, for whatever reason."""
    return lacks_sound(text) or _DECLINES.search(folded(text[:OPENING])) is not None


def is_unheard(text: str) -> bool:
    """Whether a sentence of an answer without a decision says that the model heard no sound, or will not judge it."""
    opening = folded(text[:OPENING])
    return _MISSING.search(opening) is not None or any(
        all(cue(role).search(sentence) for role in ("unable", "sound"))
        and any(cue(role).search(sentence) for role in ("sense", "provide"))
        for sentence in _SENTENCE.split(opening)
    )
